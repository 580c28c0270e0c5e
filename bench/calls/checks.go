package calls

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Checks are settings of policy, pins, labels and audit log, all "on" or all "off". The
// empty key is the default configuration.
var Checks = map[string]string{
	"off": "[audit]\nenabled = false\n",
	"on": `trust = "pin"
[[policy]]
key = "guest*"
tool = "*"
do = "read_only"
[[policy]]
tool = "*.erase"
do = "deny"
[accepts]
http = ["secret"]
[upstreams.labelled]
url = "http://127.0.0.1:1/mcp"
labels = ["secret"]
[audit]
enabled = true
`,
}

// Approve approves the tools of an upstream that await review at the server, as soon as
// there are some.
func Approve(ctx context.Context, url, upstream string) error {
	for try := 0; ; try++ {
		body := strings.NewReader(fmt.Sprintf(`{"upstream":%q,"flagged":true}`, upstream))
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v1/pins/approve", body)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		if try > 100 {
			return fmt.Errorf("no tools of %s await review: %w", upstream, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
