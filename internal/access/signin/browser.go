package signin

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/base/netguard"
)

// Browser returns the text by which a browser is recognized when it comes back from
// another site. Several sign-ins of one browser at a time share it.
func Browser(w http.ResponseWriter, r *http.Request, b netguard.Browsers, now time.Time) string {
	known := cookie.In(r, b).Get(cookie.Flow)
	if len(known) != len(rand.Text()) {
		known = rand.Text()
	}
	cookie.In(r, b).Set(w, cookie.Flow, known, now.Add(cookie.FlowTime))
	return known
}

// LocalPath returns an address of this server to go on to; "/" in place of any other.
func LocalPath(next string) string { return local(next) }
