package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson"
)

func TestAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("again ", 1000)
	serve := compressed(func(w http.ResponseWriter, _ *http.Request) { httpjson.JSON(w, http.StatusAccepted, body) })
	r := httptest.NewRequest("GET", "/", nil)
	plain := httptest.NewRecorder()
	serve(plain, r)
	r.Header.Set("Accept-Encoding", "gzip")
	small := httptest.NewRecorder()
	serve(small, r)
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
}
