package db

import "github.com/luanette/luanette/internal/base/fault"

// What a statement can run into. Ask with errors.Is; the database's own words
// follow in the message.
var (
	// ErrUnique means that a row with the same key exists already.
	ErrUnique = fault.New(fault.Conflict, "the key exists already")
	// ErrForeignKey means that a row refers to one that does not exist, or that one
	// which others refer to was to be removed.
	ErrForeignKey = fault.New(fault.Conflict, "a row would refer to one that is not there")
	// ErrConstraint means that a value breaks a rule of its table.
	ErrConstraint = fault.New(fault.InvalidParams, "the value breaks a rule of its table")
	// ErrCommitUnknown means that the database was lost while it committed, and that it
	// could not be asked afterwards: the write has happened, or it has not.
	ErrCommitUnknown = fault.New(fault.Unavailable, "the database was lost while it wrote; whether it has written is not known").
				WithHint("look at what is there before you do it again")
)
