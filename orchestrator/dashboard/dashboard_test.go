package dashboard_test

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/dashboard"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// views is a fake: a fleet as the registry would tell it.
type views struct {
	fleet  *registry.Fleet
	detail *registry.Detail
	err    error
}

func (v views) Fleet(context.Context) (*monitor.Report, error) {
	if v.err != nil {
		return nil, v.err
	}
	return monitor.Judge(v.fleet), nil
}

func (v views) Table(_ context.Context, source, table string) (*monitor.Detail, error) {
	if v.err != nil {
		return nil, v.err
	}
	if v.detail == nil || source != v.detail.Table.Source || table != v.detail.Table.Name.String() {
		return nil, catalog.Errorf(catalog.NotFound, catalog.CodeNoTable, "lakeweir get tables lists those it knows", "the registry knows no table %s/%s", source, table)
	}
	return monitor.JudgeTable(v.detail), nil
}

// answer is a response without its body.
type answer struct {
	StatusCode int
	Header     http.Header
}

func get(t *testing.T, v dashboard.Views, path string) (answer, string) {
	t.Helper()
	w := httptest.NewRecorder()
	dashboard.New(v).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	r := w.Result()
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return answer{r.StatusCode, r.Header}, string(body)
}

var assetHash = regexp.MustCompile(`\?v=[0-9a-f]{12}`)

func TestPagesAreAsTheyShouldBe(t *testing.T) {
	t.Parallel()
	down := &catalog.Error{Kind: catalog.Unavailable, Code: catalog.CodeRegistryUnavailable, Message: "the registry at db:5432/lakeweir cannot be reached: connection refused", Hint: "check that this Postgres runs"}
	for _, c := range []struct {
		name, path string
		views      views
		status     int
	}{
		{"fleet", "/", views{fleet: sampleFleet()}, http.StatusOK},
		{"fleet-filtered", "/?state=late&q=PAY+team", views{fleet: sampleFleet()}, http.StatusOK},
		{"fleet-nothing-matches", "/?q=no-such-table", views{fleet: sampleFleet()}, http.StatusOK},
		{"fleet-empty", "/", views{fleet: &registry.Fleet{Now: now}}, http.StatusOK},
		{"fleet-long-names", "/", views{fleet: longFleet()}, http.StatusOK},
		{"fleet-error", "/", views{err: down}, http.StatusServiceUnavailable},
		{"fleet-fragment", "/fragments/fleet?state=quarantined", views{fleet: sampleFleet()}, http.StatusOK},
		{"table", "/tables/shop/public.orders", views{detail: sampleDetail()}, http.StatusOK},
		{"table-stopped", "/tables/crm/public.contacts", views{detail: stoppedDetail()}, http.StatusOK},
		{"table-unknown", "/tables/shop/public.nothing", views{}, http.StatusNotFound},
		{"table-long-names", "/tables/" + strings.Repeat("s", 63) + "/" + strings.Repeat("%3Cb%3E", 9) + "." + strings.Repeat("n", 63), views{detail: longDetail()}, http.StatusOK},
		{"no-such-page", "/nowhere", views{}, http.StatusNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, body := get(t, c.views, c.path)
			require.Equal(t, c.status, r.StatusCode)
			body = strings.ReplaceAll(assetHash.ReplaceAllString(body, "?v=HASH"), "><", ">\n<") + "\n"
			path := filepath.Join("testdata", c.name+".html")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(path, []byte(body), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(body, "\n")))
		})
	}
}

func TestNamesAndMessagesAreNeverMarkup(t *testing.T) {
	t.Parallel()
	const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`
	f := sampleFleet()
	v := &f.Tables[1]
	v.Name.Name, v.Config.Owner, v.Fault = evil, evil, &registry.Fault{Code: evil, Message: evil, Hint: evil}
	v.State = catalog.Quarantined
	f.Sources[0].Name = evil
	d := sampleDetail()
	d.Table = *v
	d.Batches[0].ID, d.Batches[0].Unfit, d.Batches[0].Unfits = evil, 1, map[string]int{evil: 1}
	d.Events[0].Detail = json.RawMessage(`{"to": "<script>alert(3)</script>"}`)
	d.Schemas[0].Schema.Columns[0].Name = evil
	w := views{fleet: f, detail: d}
	for _, path := range []string{"/", "/?q=" + "%3Cscript%3Ealert(4)%3C/script%3E", "/tables/" + v.Source + "/" + strings.ReplaceAll(strings.ReplaceAll("public."+evil, "/", "%2F"), " ", "%20"), "/<script>alert(5)</script>"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		var err error
		r.URL, err = r.URL.Parse(path)
		require.NoError(t, err)
		rec := httptest.NewRecorder()
		dashboard.New(w).ServeHTTP(rec, r)
		body := rec.Body.String()
		require.NotContains(t, body, "<script>", path)
		require.NotContains(t, body, "<img", path)
	}
}

func TestEveryAnswerHasAStrictPolicy(t *testing.T) {
	t.Parallel()
	v := views{fleet: sampleFleet(), detail: sampleDetail()}
	for _, path := range []string{"/", "/tables/shop/public.orders", "/api/tables", "/nowhere", "/assets/live.js", "/healthz"} {
		r, body := get(t, v, path)
		require.Contains(t, r.Header.Get("Content-Security-Policy"), "default-src 'none'", path)
		require.NotContains(t, r.Header.Get("Content-Security-Policy"), "unsafe", path)
		require.NotRegexp(t, `(?i)\son[a-z]+=|style="|https?://[^w]`, strings.ReplaceAll(body, "http://www.w3.org", ""), path) // nothing that the policy would forbid
	}
}

func TestAssetsAreServedUnderTheAddressesOfThePage(t *testing.T) {
	t.Parallel()
	v := views{fleet: sampleFleet()}
	_, body := get(t, v, "/")
	found := regexp.MustCompile(`/assets/[a-z.]+\?v=[0-9a-f]{12}`).FindAllString(body, -1)
	require.Len(t, found, 3)
	for _, path := range found {
		r, content := get(t, v, path)
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.NotEmpty(t, content)
		require.Contains(t, r.Header.Get("Cache-Control"), "immutable")
	}
}

func TestReadinessIsTheRegistrysNotATables(t *testing.T) {
	t.Parallel()
	broken := sampleFleet()
	for i := range broken.Tables {
		broken.Tables[i].State = catalog.Quarantined
	}
	r, body := get(t, views{fleet: broken}, "/readyz")
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.JSONEq(t, `{"ready": true, "tables": 10, "withinTier": 0}`, body)

	down := views{err: &catalog.Error{Kind: catalog.Unavailable, Code: catalog.CodeRegistryUnavailable, Message: "down", Hint: "up"}}
	r, body = get(t, down, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
	require.JSONEq(t, `{"ok": false, "errors": [{"code": "registry.unavailable", "kind": "unavailable", "message": "down", "hint": "up"}]}`, body)
	r, _ = get(t, down, "/healthz")
	require.Equal(t, http.StatusOK, r.StatusCode)
}

func TestTheAPIGivesWhatThePageShows(t *testing.T) {
	t.Parallel()
	r, body := get(t, views{fleet: sampleFleet()}, "/api/tables")
	require.Equal(t, http.StatusOK, r.StatusCode)
	var d monitor.FleetDocument
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	require.Len(t, d.Tables, 10)
	require.Equal(t, 9, d.Summary.Tables)
	r, body = get(t, views{detail: sampleDetail()}, "/api/tables/shop/public.orders")
	require.Equal(t, http.StatusOK, r.StatusCode)
	var one monitor.DetailDocument
	require.NoError(t, json.Unmarshal([]byte(body), &one))
	require.Equal(t, "orders", one.Table.Name)
	r, _ = get(t, views{}, "/api/tables/shop/public.nothing")
	require.Equal(t, http.StatusNotFound, r.StatusCode)
	_, body = get(t, views{fleet: sampleFleet()}, "/api/sources")
	require.Contains(t, body, `"name": "shop"`)
}

func TestPagesOnlyShow(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	dashboard.New(views{fleet: sampleFleet()}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

func TestAnInternalErrorIsNotShown(t *testing.T) {
	t.Parallel()
	r, body := get(t, views{err: io.ErrUnexpectedEOF}, "/")
	require.Equal(t, http.StatusInternalServerError, r.StatusCode)
	require.NotContains(t, body, io.ErrUnexpectedEOF.Error())
}
