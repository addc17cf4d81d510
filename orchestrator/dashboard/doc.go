// Package dashboard serves the pages on which a person sees every table, and the same
// facts as JSON.
//
// A handler asks Views for a verdict, turns it into a struct of finished words (row.go,
// table_page.go), and a template writes it down: templates decide nothing. Pages work
// without JavaScript; with it they replace what changed once a second. All assets are
// in the binary, and the content security policy allows nothing else. What is fresh or
// late is monitor's to say; who may look is left to what stands before this handler,
// which listens on the loopback interface.
//
// After editing a .templ file run go generate in this folder and commit both.
package dashboard

//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1118 generate
