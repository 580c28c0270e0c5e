package attacks

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
)

// events returns all stored events. Their stream never ends, so it is read until no more
// events arrive for a while.
func events(h *program, headers map[string]string) string {
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/api/v1/events?since=0", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := httpjsontest.Client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	silence := time.AfterFunc(2*time.Second, cancel)
	var all []byte
	piece := make([]byte, 64<<10)
	for {
		n, err := response.Body.Read(piece)
		all = append(all, piece[:n]...)
		if err != nil {
			if err != io.EOF && ctx.Err() == nil {
				h.t.Fatal(err)
			}
			return string(all)
		}
		silence.Reset(300 * time.Millisecond)
	}
}
