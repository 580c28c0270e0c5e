package httpjson_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
)

func TestError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fault.New(fault.NotFound, "no such thing").WithHint("make one"), `{"code":"not_found","error":"Not Found","hint":"make one","message":"no such thing"}`},
		{errors.New("broken"), `{"code":"internal_error","error":"Not Found","message":"broken"}`},
	} {
		w := httptest.NewRecorder()
		httpjson.Error(w, http.StatusNotFound, tt.err)
		if got := w.Body.String(); got != tt.want+"\n" || w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("response to %v: %d %s", tt.err, w.Code, got)
		}
	}
}
