package upstreamset

import (
	"fmt"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// So many private upstreams are connected at a time. One that nobody uses makes room.
func TestMostPrivateUpstreams(t *testing.T) {
	t.Parallel()
	start, all := time.Now(), privateUpstreams{}
	use := func(id string, after time.Duration) (err error) {
		next, _, err := all.using(upstream.Spec{Name: PrivateName(id)}, start.Add(after))
		if err == nil {
			all = next
		}
		return err
	}
	for i := range maxPrivate {
		if err := use(fmt.Sprint("s", i), time.Duration(i)*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if err := use("more", time.Hour); fault.CodeOf(err) != fault.Limit || len(all) != maxPrivate {
		t.Errorf("one more: %v, %d are connected", err, len(all))
	}
	if err := use("s0", time.Hour); err != nil {
		t.Errorf("one that is connected: %v", err)
	}
	if err := use("more", time.Hour+2*time.Second); err != nil || len(all) != maxPrivate {
		t.Errorf("in place of one that nobody uses: %v, %d are connected", err, len(all))
	}
}
