package calls

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Guards are settings of what stands between callers and tools, all "on" or all
// "off"; without a word it is what somebody has who configured nothing.
var Guards = map[string]string{
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

// Approve approves what the server at url holds of an upstream, once it has seen
// it.
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
			return fmt.Errorf("nothing of %s came to be approved: %w", upstream, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
