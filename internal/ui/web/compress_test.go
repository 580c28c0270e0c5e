package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

func TestAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("again ", 1000)
	route := principal.Route{Write: compressed(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodPost {
			return fault.New(fault.InvalidParams, "no")
		}
		httpjson.JSON(w, http.StatusAccepted, body)
		return nil
	})}
	r := httptest.NewRequest("GET", "/", nil)
	plain := httptest.NewRecorder()
	route.ServeHTTP(plain, r)
	r.Header.Set("Accept-Encoding", "gzip")
	small := httptest.NewRecorder()
	route.ServeHTTP(small, r)
	if plain.Header().Get("Content-Encoding") != "" || plain.Header().Get("Vary") != "Accept-Encoding" || small.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("headers: %v, %v", plain.Header(), small.Header())
	}
	if small.Code != http.StatusAccepted || small.Header().Get("Content-Encoding") != "gzip" || small.Body.Len() > plain.Body.Len()/10 {
		t.Errorf("status %d, %v, %d bytes of %d", small.Code, small.Header(), small.Body.Len(), plain.Body.Len())
	}
	zip, err := gzip.NewReader(small.Body)
	if err != nil {
		t.Fatal(err)
	}
	if whole, err := io.ReadAll(zip); err != nil || string(whole) != plain.Body.String() {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
	r.Method = http.MethodPost
	refused := httptest.NewRecorder()
	route.ServeHTTP(refused, r)
	if refused.Code != http.StatusBadRequest || refused.Header().Get("Content-Encoding") != "" || !strings.Contains(refused.Body.String(), `"no"`) {
		t.Errorf("an error: %d %v %s", refused.Code, refused.Header(), refused.Body)
	}
}
