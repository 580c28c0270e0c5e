package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/cluster/remotecall"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/mcp/sessionstore"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/backup"
	"github.com/luanette/luanette/internal/store/db"
)

// BackupLocation is where a server with this configuration stores its data.
func BackupLocation(loaded *config.Loaded, env config.Environment) (backup.Location, error) {
	url, err := loaded.DatabaseURL(loaded.SecretFinder(env))
	return backup.Location{Database: url, Data: loaded.Data, Contents: loaded.ContentLocation}, err
}

// runBackups makes backups as long as the server runs.
func (srv *Server) runBackups() {
	o := srv.config.Backup
	if o.Every == 0 {
		return
	}
	from, err := BackupLocation(srv.config, srv.options.Env)
	if err != nil {
		srv.log.Error("no backups are made", "error", err)
		return
	}
	srv.runBackground(backup.Schedule{
		From: from, Folder: cmp.Or(o.Folder, filepath.Join(srv.config.Data, backup.Folder)), Every: time.Duration(o.Every), Keep: o.Keep,
		Version: srv.options.Version, Schema: BackupSchema(), Log: srv.log,
	}.Run)
}

// BackupSchema describes the tables of all packages to a restore.
func BackupSchema() backup.Schema {
	return backup.Schema{
		Known: backup.Once(knownMigrations), CreateTables: job.CreateTables,
		Release:      map[string]func(context.Context, *db.DB) error{"job": job.ReleaseJobs, "script": script.ReleaseSessions},
		RunningNodes: node.Running,
	}
}

// knownMigrations returns the migrations of this program. It builds a server on an
// empty database, so that every package registers its own.
func knownMigrations(ctx context.Context) (sets map[string]fs.FS, err error) {
	folder, err := os.MkdirTemp("", "luanette-schema-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	env := config.Environment{"HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}
	empty := filepath.Join(folder, "none.toml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return nil, err
	}
	loaded, err := config.Load(config.Sources{File: empty, Env: env, Flags: map[string]string{
		"data": filepath.Join(folder, "data"), "log.level": "error", "blobs": config.BlobsInDatabase,
	}})
	if err != nil {
		return nil, err
	}
	srv, err := Build(ctx, loaded, Options{Version: "schema", Stderr: io.Discard, Env: env, Jobs: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, srv.Close(ctx)) }()
	if _, err := sessionstore.Open(ctx, srv.store, time.Hour); err != nil { // only nodes that share a database use these two
		return nil, err
	}
	if _, err := remotecall.Open(ctx, srv.store, remotecall.Options{}); err != nil {
		return nil, err
	}
	return srv.store.Migrations(), nil
}
