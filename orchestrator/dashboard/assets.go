package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
)

//go:embed assets
var assetFiles embed.FS

// asset returns the address of an embedded file. It holds a hash of the content, so
// browsers may keep what they have for ever.
func asset(name string) string {
	b, err := assetFiles.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // named in a template, so the golden tests see it
	}
	sum := sha256.Sum256(b)
	return "/assets/" + name + "?v=" + hex.EncodeToString(sum[:6])
}

func serveAssets() http.Handler {
	files := http.FileServerFS(assetFiles)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		files.ServeHTTP(w, r)
	})
}
