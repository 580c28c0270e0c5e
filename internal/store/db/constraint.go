package db

import "github.com/luanette/luanette/internal/base/fault"

// The errors of constraints, for errors.Is. The database's own message follows.
var (
	// ErrUnique means that a row with the same key exists already.
	ErrUnique = fault.New(fault.Conflict, "the key exists already")
	// ErrForeignKey means that a row refers to one that does not exist, or that a
	// removed row is still referred to.
	ErrForeignKey = fault.New(fault.Conflict, "a row refers to one that does not exist")
	// ErrConstraint means that a value breaks a rule of its table.
	ErrConstraint = fault.New(fault.InvalidParams, "the value breaks a rule of its table")
	// ErrCommitUnknown means that the connection was lost during a commit and the
	// outcome could not be looked up: the write may or may not have happened.
	ErrCommitUnknown = fault.New(fault.Unavailable, "the connection to the database was lost during a commit; whether the write happened is unknown").
				WithHint("check the current state before you retry")
)
