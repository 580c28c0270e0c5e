// Package approval stores decisions of people about what scripts may do. A run that
// reaches an effect which needs approval is stored as a pending approval, with the plan
// of what it would do. The decision is stored with it, and can be remembered for later
// runs.
//
// The package knows neither scripts nor jobs: they submit paused runs and resume them.
package approval

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/scripting/host"
)

// State is the state of an approval.
type State string

// The states. All but the first are final.
const (
	Pending   State = "pending"
	Allowed   State = "allowed"
	Denied    State = "denied"
	Withdrawn State = "withdrawn" // the run no longer waits
)

// Approval is a request to approve a run, and the decision.
type Approval struct {
	ID string
	host.RunInfo
	Subject  string // the effect: "git.push", "fs.write"
	Space    string // the namespace or module of the subject: "git", "fs"
	State    State
	Plan     []host.Planned
	Certain  bool
	Complete bool
	// Incomplete is why the plan is not complete.
	Incomplete string
	Output     []host.OutputLine
	Resume     []byte          // what the runner needs to continue
	Outcome    json.RawMessage // the outcome of the run after the decision; nil before, and for jobs
	Created    time.Time
	Expires    time.Time
	Decided    time.Time // zero while it is pending
	By         string    // who decided

	Asker     Party      // whose run it is
	Org       string     // the asker's organisation
	Role      string     // those who decide must have it; "" is whoever may see the request
	Needed    int        // how many people must agree
	Decisions []Decision // so far, in order
}

// Job returns the id of the job that waits, or "".
func (a *Approval) Job() string {
	id, ok := strings.CutPrefix(a.Key, "job:")
	if !ok {
		return ""
	}
	return id
}

// The scopes for which a decision can be remembered.
const (
	Tool      = "tool"      // the tool or function
	Namespace = "namespace" // all tools of the namespace, or functions of the module
	Script    = "script"    // everything that the same script does
)

// Rule is a remembered decision.
type Rule struct {
	ID      string
	Scope   string
	Subject string // "git.push", "git", or the hash of a script
	Allow   bool
	Created time.Time
	By      string

	maker Party
}

// subjectOf returns the subject of an effect and its namespace or module. An effect
// without a namespace or module gets the subject itself.
func subjectOf(e host.Effect) (subject, space string) {
	subject = e.DisplayName()
	if ref, ok := e.Tool(); ok {
		return subject, cmp.Or(ref.Space, subject)
	}
	space, _, _ = strings.Cut(subject, ".")
	return subject, space
}

// IDPrefix begins the id of every approval.
const IDPrefix = "a-"

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()[:16]) }
