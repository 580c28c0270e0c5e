package server

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/spending"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/cluster/remotecall"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/credentials/personal"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/govern/erasure"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/govern/quota"
	"github.com/luanette/luanette/internal/govern/share"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/mcp/sessionstore"
	"github.com/luanette/luanette/internal/mcp/taskrelay"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/session"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/backup"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/delivery"
	"github.com/luanette/luanette/internal/store/kv"
	"github.com/luanette/luanette/internal/tools/results"
	"github.com/luanette/luanette/internal/tools/usage"
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
	folder := BackupFolder(srv.config)
	if failure, failed := backup.FailureOf(folder); failed {
		srv.backupFailure.Store(&failure.Error)
	}
	from := func() (backup.Location, error) { return BackupLocation(srv.config, srv.options.Env) }
	srv.runBackground(backup.Schedule{
		From: from, Folder: folder, Every: time.Duration(o.Every), Keep: o.Keep,
		Version: srv.options.Version, Schema: BackupSchema(), Log: srv.log, Report: srv.backupEnded,
	}.Run)
}

// BackupFolder is where a server with this configuration stores its own backups.
func BackupFolder(loaded *config.Loaded) string {
	return cmp.Or(loaded.Backup.Folder, filepath.Join(loaded.Data, backup.Folder))
}

// backupEnded remembers how the latest backup ended.
func (srv *Server) backupEnded(err error) {
	if err == nil {
		srv.backupFailure.Store(nil)
		return
	}
	text := err.Error()
	srv.backupFailure.Store(&text)
}

// backupFailed says why the latest backup was not made; "" if it was, or none is due yet.
func (srv *Server) backupFailed() string {
	if text := srv.backupFailure.Load(); text != nil {
		return *text
	}
	return ""
}

// BackupSchema describes the tables of all packages to a restore.
func BackupSchema() backup.Schema {
	return backup.Schema{
		Known: knownMigrations(), CreateTables: job.CreateTables,
		Release:      map[string]func(context.Context, *db.DB) error{"job": job.ReleaseJobs, "script": session.ReleaseSessions},
		RunningNodes: node.Running,
	}
}

// knownMigrations returns the migrations of all packages by the names of their sets, also
// of those that a configuration switches off: a backup of a server that had them on is
// restored by any. The index of words is not among them, which a restore makes anew.
func knownMigrations() map[string]fs.FS {
	return map[string]fs.FS{
		"approval":   approval.Migrations,
		"artifact":   artifact.Migrations,
		"audit":      audit.Migrations,
		"authserver": authserver.Migrations,
		"delivery":   delivery.Migrations,
		"erasure":    erasure.Migrations,
		"errand":     remotecall.Migrations,
		"hoot":       hootenanny.Migrations,
		"job":        job.Migrations,
		"keyring":    apikey.Migrations,
		"kv":         kv.Migrations,
		"node":       node.Migrations,
		"oauth":      oauth.Migrations,
		"people":     people.Migrations,
		"personal":   personal.Migrations,
		"policy":     policy.Migrations,
		"quota":      quota.Migrations,
		"results":    results.Migrations,
		"script":     script.Migrations,
		"share":      share.Migrations,
		"signin":     signin.Migrations,
		"spending":   spending.Migrations,
		"talk":       conversation.Migrations,
		"task":       taskrelay.Migrations,
		"trust":      pin.Migrations,
		"usage":      usage.Migrations,
		"visit":      sessionstore.Migrations,
		"wanted":     upstreamstore.Migrations,

		cas.MigrationSet: cas.Migrations,
	}
}
