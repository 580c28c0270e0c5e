// Package approval stores decisions of people about what scripts may do. A run that
// reaches an effect which needs approval is stored as a pending approval, with the plan
// of what it would do. The decision is stored with it, and can be remembered for later
// runs.
//
// The package knows neither scripts nor jobs: they submit paused runs and resume them.
package approval

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
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
// without a namespace or module gets the subject itself. Those of tools are not the caller's
// names: "git" is another server for each organisation that has one.
func (s *Store) subjectOf(ctx context.Context, e host.Effect) (subject, space string) {
	subject = e.DisplayName()
	if ref, ok := e.Tool(); ok {
		if s.options.Real != nil {
			ref = s.options.Real(ctx, ref)
		}
		return ref.String(), cmp.Or(ref.Space, ref.String())
	}
	space, _, _ = strings.Cut(subject, ".")
	return subject, space
}

// IDPrefix begins the id of every approval.
const IDPrefix = "a-"

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()[:16]) }

// Party is somebody who asks or decides.
type Party struct {
	ID     string `json:"id"`               // of the principal
	Name   string `json:"name,omitempty"`   // for people
	User   string `json:"user,omitempty"`   // the person behind it, where one is known
	Person string `json:"person,omitempty"` // for whom it acts in a chat
	Org    string `json:"org,omitempty"`
	Agent  string `json:"agent,omitempty"` // the client program, as it calls itself
}

// owner returns whose run waits for the approval.
func (a *Approval) owner() principal.Owner {
	return principal.Owner{ID: a.Asker.ID, Person: a.Asker.Person, Org: a.Org}
}

// askedBy reports whether a person asked.
func (a *Approval) askedBy(person string) bool {
	return a.Asker.is(Party{ID: principal.PersonID(person, a.Org), User: person})
}

func partyOf(who principal.Principal) Party {
	return Party{ID: who.ID, Name: who.Name, User: who.User, Person: who.Person, Org: who.Org}
}

// Title is the party's name in messages, with the program where anybody may use it.
func (p Party) Title() string {
	switch {
	case p.ID == principal.LocalID && p.Agent != "":
		return "the owner of the machine, with " + p.Agent
	case p.ID == principal.LocalID:
		return "the owner of the machine"
	case p.ID == principal.GuestID && p.Agent != "":
		return "a guest of the machine, with " + p.Agent
	case p.ID == principal.GuestID:
		return "a guest of the machine"
	default:
		return cmp.Or(p.Name, p.ID)
	}
}

// is reports whether two parties are, or may be, the same person: by the same key, by
// different keys of one person, or in a chat.
func (p Party) is(other Party) bool {
	return p.ID == other.ID || p.User != "" && p.User == other.User || p.Person != "" && p.Person == other.Person
}

func (p Party) text() string {
	raw, _ := json.Marshal(p) // texts always encode
	return string(raw)
}

// readParty reads a stored party. Rows of older versions have none: then it is known by
// its ID only.
func readParty(stored, id string) (p Party, err error) {
	if stored == "" {
		return Party{ID: cmp.Or(id, principal.LocalID), Name: cmp.Or(id, principal.LocalID)}, nil
	}
	return p, json.Unmarshal([]byte(stored), &p)
}

// publish tells those who see a request of it: its owner, and the people who have its role
// or decide in the place of one who has.
func (s *Store) publish(ctx context.Context, a *Approval, p event.Payload) {
	readers, err := s.readers(ctx, a)
	s.warn(ctx, "those who decide not told", err)
	s.options.Events.PublishTo(a.owner(), readers, p)
}

func (s *Store) readers(ctx context.Context, a *Approval) (list []string, err error) {
	if a.Role == "" {
		return nil, nil
	}
	all, err := s.directory(ctx)
	if err != nil {
		return nil, err
	}
	substitutes, err := s.substitutes(ctx, all, a)
	for id := range all {
		if all.has(id, a.Org, a.Role) || slices.ContainsFunc(substitutes, func(d Delegation) bool { return d.To == id }) {
			list = append(list, principal.PersonID(id, a.Org))
		}
	}
	return list, err
}

// Requested is published when a run waits for a decision.
type Requested struct {
	ID      string `json:"approval_id"`
	Run     string `json:"run"`
	Name    string `json:"name,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Subject string `json:"subject"`
	Entries int    `json:"entries"`          // of its plan
	Role    string `json:"role,omitempty"`   // those who decide must have it
	Needed  int    `json:"needed,omitempty"` // how many of them
}

// EventType is "approval.requested".
func (Requested) EventType() string { return "approval.requested" }

// EventKey is the approval's id.
func (e Requested) EventKey() string { return e.ID }

// Agreed is published when somebody has agreed, and others must too.
type Agreed struct {
	ID      string `json:"approval_id"`
	Run     string `json:"run"`
	Subject string `json:"subject"`
	By      string `json:"by"`
	Agreed  int    `json:"agreed"` // how many have
	Needed  int    `json:"needed"`
}

// EventType is "approval.agreed".
func (Agreed) EventType() string { return "approval.agreed" }

// EventKey is the approval's id.
func (e Agreed) EventKey() string { return e.ID }

// Settled is published when an approval is no longer pending.
type Settled struct {
	ID      string `json:"approval_id"`
	Run     string `json:"run"`
	Subject string `json:"subject"`
	State   State  `json:"status"`
	By      string `json:"by,omitempty"`
}

// EventType is "approval.settled".
func (Settled) EventType() string { return "approval.settled" }

// EventKey is the approval's id.
func (e Settled) EventKey() string { return e.ID }
