package install

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// atOnce is how many files are fetched at the same time.
const atOnce = 16

// jar is a file of a Maven repository.
type jar struct{ sum, path string }

// Jars returns the paths of the Java libraries in a list, in its order, fetching
// those that are not there. A line of a list is as sha256sum prints it: the checksum,
// and the path in a Maven repository. A file that is not what the list says is an
// error. Several processes may ask for the same at once.
func Jars(ctx context.Context, list string) ([]string, error) {
	jars, err := parseList(list)
	if err != nil {
		return nil, err
	}
	cache, err := Cache()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(cache, "jars")
	var paths []string
	var missing []jar
	for _, j := range jars {
		file := filepath.Join(folder, filepath.FromSlash(j.path))
		paths = append(paths, file)
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, j)
		}
	}
	if len(missing) == 0 {
		return paths, nil
	}
	from, err := repository()
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, j := range missing {
		group.Go(func() error {
			if err := fetch(ctx, from, folder, j); err != nil {
				return fmt.Errorf("fetch %s: %w", j.path, err)
			}
			return nil
		})
	}
	return paths, group.Wait()
}

// Version returns the version of an artifact among the paths that Jars returns; empty
// when it is not there.
func Version(jars []string, artifact string) string {
	for _, path := range jars {
		folder := filepath.Dir(path)
		if filepath.Base(filepath.Dir(folder)) == artifact {
			return filepath.Base(folder)
		}
	}
	return ""
}

func parseList(list string) ([]jar, error) {
	var out []jar
	lines := bufio.NewScanner(strings.NewReader(list))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 || len(words[0]) != sha256.Size*2 || !filepath.IsLocal(words[1]) {
			return nil, fmt.Errorf("line %d is not a checksum and a path: %q", n, lines.Text())
		}
		out = append(out, jar{sum: words[0], path: words[1]})
	}
	return out, lines.Err()
}

// fetch puts a file into folder, whole or not at all. A broken connection is tried
// again twice.
func fetch(ctx context.Context, from, folder string, j jar) (err error) {
	for range 3 {
		tried, cancel := context.WithTimeout(ctx, 5*time.Minute)
		err = download(tried, from+"/"+j.path, filepath.Join(folder, filepath.FromSlash(j.path)), j.sum)
		cancel()
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

func download(ctx context.Context, url, file, sum string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the repository answers %s", resp.Status)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), "part-")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // after the rename there is nothing to remove
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(part, hash), resp.Body)
	if cerr := part.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("its SHA-256 is %s, and the list says %s", got, sum)
	}
	return os.Rename(part.Name(), file)
}
