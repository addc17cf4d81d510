package stack

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Both interfaces show the same schemas under the same numbers, each once.
func TestASchemaRegistryIsOneBehindBothInterfaces(t *testing.T) {
	t.Parallel()
	r, err := NewSchemaRegistry(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	call := func(method, url, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("X-Registry-ArtifactId", "shop.public.orders-value")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, strings.TrimSpace(string(text))
	}
	const first, second = `{"type":"record","name":"a","fields":[]}`, `{"type":"record","name":"b","fields":[]}`
	put := func(schema string) (of struct {
		GlobalID int `json:"globalId"`
		Version  string
	},
	) {
		status, text := call(http.MethodPost, r.Apicurio+"/groups/default/artifacts?ifExists=RETURN_OR_UPDATE", schema)
		require.Equal(t, http.StatusOK, status)
		require.NoError(t, json.Unmarshal([]byte(text), &of))
		return of
	}
	require.Equal(t, 1, put(first).GlobalID)
	require.Equal(t, "2", put(second).Version)
	require.Equal(t, 1, put(first).GlobalID, "it is there already")
	for _, kind := range []string{"globalIds", "contentIds"} {
		_, text := call(http.MethodGet, r.Apicurio+"/ids/"+kind+"/2", "")
		require.JSONEq(t, second, text)
		_, text = call(http.MethodGet, r.Apicurio+"/ids/"+kind+"/2/references", "")
		require.Equal(t, "[]", text)
	}

	body, err := json.Marshal(map[string]string{"schema": second})
	require.NoError(t, err)
	_, text := call(http.MethodPost, r.URL+"/subjects/other-value/versions", string(body))
	require.JSONEq(t, `{"id":2}`, text)
	_, text = call(http.MethodGet, r.URL+"/schemas/ids/2", "")
	require.JSONEq(t, string(body), text)
	_, text = call(http.MethodGet, r.URL+"/subjects", "")
	require.JSONEq(t, `["other-value","shop.public.orders-value"]`, text)
	_, text = call(http.MethodGet, r.URL+"/subjects/shop.public.orders-value/versions/latest", "")
	require.Contains(t, text, `"version":2`)
	for _, url := range []string{"/schemas/ids/3", "/schemas/ids/x", "/subjects/none/versions/latest", "/subjects/other-value/versions/2", "/apis/registry/v2/ids/globalIds/0"} {
		status, _ := call(http.MethodGet, r.URL+url, "")
		require.Equal(t, http.StatusNotFound, status, url)
	}
	status, _ := call(http.MethodPost, r.URL+"/subjects/x/versions", "{")
	require.Equal(t, http.StatusUnprocessableEntity, status)
}
