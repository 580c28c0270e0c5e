package web_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/observe/history"
	"github.com/luanette/luanette/internal/ui/web"
)

func TestCallsOfASpan(t *testing.T) {
	t.Parallel()
	calls := history.New(nil)
	calls.Record(history.Call{Server: "files", Tool: "read", Took: time.Millisecond})
	f := open(t, web.Options{Calls: calls}, event.BusOptions{})
	for path, want := range map[string]struct {
		status int
		step   float64
	}{
		"/api/v1/calls":           {http.StatusOK, 10},
		"/api/v1/calls?span=6h":   {http.StatusOK, 300},
		"/api/v1/calls?span=25h":  {http.StatusBadRequest, 0},
		"/api/v1/calls?span=long": {http.StatusBadRequest, 0},
	} {
		answer := f.get(t, path)
		var report history.Report
		if err := json.NewDecoder(answer.Body).Decode(&report); err != nil || answer.StatusCode != want.status || report.Step != want.step {
			t.Errorf("%s: %d, step %v, %v", path, answer.StatusCode, report.Step, err)
		}
		if want.status == http.StatusOK && report.Total.Calls != 1 {
			t.Errorf("%s: %+v", path, report.Total)
		}
	}
}
