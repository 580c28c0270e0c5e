package script

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// A session can be used by its id, which is unguessable, or by its name, which only its
// owner can use. A session that is used by a name that does not exist yet is created.

// idPrefix begins every id, and no name.
const idPrefix = "s-"

var sessionName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}$`) })

// isSessionName reports whether a text can be used instead of an id.
func isSessionName(text string) bool {
	return !strings.HasPrefix(text, idPrefix) && sessionName().MatchString(text)
}

// idOf returns the id of a session, given its id or its name.
func (s *Sessions) idOf(ctx context.Context, owner, ref string) (id string, err error) {
	if !isSessionName(ref) {
		return ref, nil // the id of a session, or of none
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT id FROM sessions WHERE owner = $1 AND handle = $2 AND used > $3`, owner, ref, s.oldest()).Scan(&id)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", errNoSession()
	}
	return id, err
}

// idFor is idOf, but creates a session that is named for the first time.
func (s *Sessions) idFor(ctx context.Context, owner, ref, language string) (string, error) {
	id, err := s.idOf(ctx, owner, ref)
	if fault.CodeOf(err) != fault.NotFound {
		return id, err
	}
	made, err := s.Create(ctx, SessionSpec{Owner: owner, Name: ref, Language: language, named: true})
	if errors.Is(err, errNameTaken) { // meanwhile
		return s.idOf(ctx, owner, ref)
	}
	return made.ID, err
}

// errNameTaken is returned if another session of the owner has the name.
var errNameTaken = fault.New(fault.Conflict, "another session has this name")
