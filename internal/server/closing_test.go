package server

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestClosingNeverWaitsForever checks that a part which does not end is named, given up, and
// does not keep the others from closing.
func TestClosingNeverWaitsForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		var closed []string
		hold := make(chan struct{})
		var parts closing
		parts.plain("first", func() { closed = append(closed, "first") })
		parts.plain("stuck", func() { <-hold })
		parts.within("bounded", time.Minute, func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		begun := time.Now()
		err := parts.close(t.Context(), slog.New(slog.NewTextHandler(&lines, nil)))
		if took := time.Since(begun); took != time.Minute+partTimeout+slowAfter {
			t.Errorf("closing took %s", took)
		}
		if err == nil || !strings.Contains(err.Error(), "close stuck: not done after 5s") || !strings.Contains(err.Error(), "close bounded: context deadline exceeded") {
			t.Errorf("closed with %v", err)
		}
		if len(closed) != 1 || !strings.Contains(lines.String(), "part=stuck") || !strings.Contains(lines.String(), "part=bounded") {
			t.Errorf("closed %v, logged %s", closed, lines.String())
		}
		close(hold)
	})
}
