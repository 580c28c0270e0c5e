package lua

import (
	"errors"
	"fmt"
)

// Forker is what the Data of a userdata implements to be copied by
// [State.Fork], and what values kept by [State.Store] implement to be carried
// into the fork. The copy must not share anything with the original that
// either of them changes; a value that never changes may return itself.
type Forker interface {
	Fork() (any, error)
}

// Saver is what the Data of a userdata implements to be part of a snapshot.
// Kind names the function in [RestoreOptions] that makes the value again out
// of data.
type Saver interface {
	Save() (kind string, data []byte, err error)
}

// TransferError tells which part of a state cannot be forked or saved.
type TransferError struct {
	// Path leads to the part, as in "globals.tracks[2].file".
	Path string
	// Problem says what it is and why it stays behind.
	Problem string
}

// Error gives path and problem.
func (e *TransferError) Error() string { return e.Path + ": " + e.Problem }

// Registry returns a table for the host: scripts reach it only through
// debug.getregistry, and forks and snapshots carry what is in it, so that a
// host finds its functions and coroutines again.
func (s *State) Registry() *Table { return s.registryTable() }

var errBusy = errors.New("a call is running in it")

// atRest reports whether no call is running, so that nothing of the state is
// on a Go stack.
func (s *State) atRest() bool {
	return s.cur == s.main && len(s.main.frames) == 0 && s.depth == 0 && !s.gc.running && !s.gc.finalizing
}

// forkData copies the host's value of a userdata for the state to.
func forkData(data any, to *State) (any, error) {
	switch d := data.(type) {
	case nil, bool, int, int64, uint64, float64, string:
		return data, nil
	case *stream:
		return d.forkFor(to)
	case Forker:
		return d.Fork()
	}
	return nil, fmt.Errorf("a userdata of type %T cannot be forked", data)
}

// saveData gives the kind and the content of a userdata for a snapshot.
func saveData(data any) (kind string, content []byte, err error) {
	switch d := data.(type) {
	case nil:
		return "", nil, nil
	case Saver:
		return d.Save()
	}
	return "", nil, fmt.Errorf("a userdata of type %T cannot be saved", data)
}
