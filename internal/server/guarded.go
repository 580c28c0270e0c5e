package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
)

// guardedFile is in a data folder whose server requires keys, or did.
const guardedFile = "keys_required"

// checkGuarded refuses to open a server to this machine that once required keys: its database
// was emptied or replaced.
func (srv *Server) checkGuarded(ctx context.Context) error {
	required, err := srv.auth.KeyRequired(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(srv.config.Data, guardedFile)
	if required {
		return srv.noteGuarded()
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		srv.keys.Watch(func() { srv.noteFirstKey(context.WithoutCancel(ctx)) })
		return nil
	}
	return fault.New(fault.Config, "this server required keys before, and its database has none").
		WithHint("restore a backup, or make a key with `luanette key create admin --scope admin`; to open it to this machine again, remove %s", path)
}

// noteGuarded makes the file.
func (srv *Server) noteGuarded() error {
	path := filepath.Join(srv.config.Data, guardedFile)
	if err := os.WriteFile(path, []byte("This server requires keys. Without any, it does not start.\n"), 0o600); err != nil {
		return fault.Wrap(fault.Config, err, "note that keys are required")
	}
	return nil
}

// noteFirstKey makes the file when the first key was created.
func (srv *Server) noteFirstKey(ctx context.Context) {
	has, err := srv.keys.HasKeys(ctx)
	if err == nil && has {
		err = srv.noteGuarded()
	}
	if err != nil {
		srv.log.WarnContext(ctx, "a server that loses its database will not notice that it had keys", "error", err)
	}
}
