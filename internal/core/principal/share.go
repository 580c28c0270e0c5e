package principal

import "context"

// Level is what a share permits with a thing of somebody else.
type Level string

// The levels, each with what the one before permits.
const (
	Nothing Level = ""
	See     Level = "see"  // look at it and its results
	Use     Level = "use"  // run it, call it, go on in it, as oneself
	Edit    Level = "edit" // change, cancel or remove it
)

// Kind is the kind of a thing that can be shared.
type Kind string

// The kinds.
const (
	Job          Kind = "job"
	Schedule     Kind = "schedule"
	Session      Kind = "session"
	Artifact     Kind = "artifact"
	Script       Kind = "script"
	Conversation Kind = "conversation"
)

// Shares tells what owners share with others of their organisation.
type Shares interface {
	// Level returns what p may do with a thing that somebody else owns.
	Level(ctx context.Context, p Principal, kind Kind, id string) (Level, error)
	// IDs returns the things of a kind that others share with p.
	IDs(ctx context.Context, p Principal, kind Kind) ([]string, error)
}

// Thing is something that its owner can share.
type Thing struct {
	ID    string // as shares name it
	Owner Owner
	Title string // for people; may be empty
}

// Permits reports whether a level includes another.
func (l Level) Permits(wanted Level) bool { return wanted != Nothing && rank[l] >= rank[wanted] }

var rank = map[Level]int{Nothing: 0, See: 1, Use: 2, Edit: 3}
