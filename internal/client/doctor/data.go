package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/fileowner"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/server"
	"github.com/luanette/luanette/internal/store/backup"
)

// Free space under which a disk is nearly full.
const (
	littleSpace = 1 << 30
	noSpace     = 100 << 20
)

// dataFolder checks that the data folder can be written, by its owner only, and that there
// is space.
func (d *doctor) dataFolder(context.Context) {
	const check = "data folder"
	path := d.Config.Data
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.report(Finding{check, Note, path + " does not exist yet; the first start creates it", ""})
		return
	case err != nil:
		d.failed(check, err)
		return
	case !info.IsDir():
		d.report(Finding{check, Problem, path + " is not a folder", "choose another with --data or LUANETTE_DATA"})
		return
	}
	if d.foreign {
		d.ownedByService()
	}
	if file, err := os.CreateTemp(path, ".doctor-"); err != nil {
		d.report(Finding{check, Problem, err.Error(), cmp.Or(fileowner.Denied(err), "choose a folder you may write to with --data or LUANETTE_DATA")})
		return
	} else if err := errors.Join(file.Close(), os.Remove(file.Name())); err != nil {
		d.failed(check, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		d.report(Finding{check, Warning, fmt.Sprintf("other users may enter %s (mode %04o)", path, info.Mode().Perm()), "chmod 700 " + path})
	}
	d.space(path)
}

// ownedByService says how root looks into the data folder of a service: through its server.
func (d *doctor) ownedByService() {
	owner := "it belongs to " + fileowner.Name(d.Config.Data)
	if d.serves() {
		d.report(Finding{"data folder", Note, owner + ": its server is asked for what is in it", ""})
		return
	}
	d.report(Finding{"data folder", Problem, owner + ", and no server runs on it: database, keys and upstreams were not examined", "start the service, such as by `systemctl start luanette`; `journalctl -u luanette` says why it ended"})
}

// space reports the free space of the disk with the data folder.
func (d *doctor) space(path string) {
	free, known := freeSpace(path)
	text := fmt.Sprintf("%s, %.1f GB free", path, float64(free)/1e9)
	switch {
	case !known:
		d.ok("data folder", "%s", path)
	case free < noSpace:
		d.report(Finding{"data folder", Problem, text, "free space on its disk, or move it with --data"})
	case free < littleSpace:
		d.report(Finding{"data folder", Warning, text, "free space on its disk, or move it with --data"})
	default:
		d.ok("data folder", "%s", text)
	}
}

// checkTimeout limits how long the database may be read to find damage.
const checkTimeout = 20 * time.Second

// database opens the database, brings its tables up to date as a start does, and looks for
// damage.
func (d *doctor) database(ctx context.Context) {
	const check = "database"
	if d.foreign {
		return // its server says at /ready whether it can be used
	}
	fresh := d.isFresh()
	if fresh && strings.HasPrefix(d.Config.Database, "sqlite:") {
		return // a start creates it
	}
	if d.server == nil && !fresh { // its start was the test
		srv, err := server.Build(ctx, d.Config, server.Options{Version: d.Version, Stderr: io.Discard, Env: d.Env, Archive: true, OnDemand: true})
		if err == nil {
			err = srv.Close(ctx)
		}
		if err != nil {
			d.failed(check, err)
			return
		}
	}
	store, err := d.Config.OpenDatabase(ctx, d.Config.SecretFinder(d.Env))
	if err != nil {
		d.failed(check, err)
		return
	}
	defer func() { _ = store.Close() }()
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	switch err := store.Check(limited); {
	case limited.Err() != nil:
		d.ok(check, "%s opens; it is too large to be read whole here", store.Kind())
	case err != nil:
		d.report(Finding{check, Problem, err.Error(), "restore a backup with `luanette restore`; docs/operate.md"})
	default:
		d.ok(check, "%s, tables up to date, no damage", store.Kind())
	}
}

// isFresh reports whether there is no data folder yet.
func (d *doctor) isFresh() bool {
	_, err := os.Stat(d.Config.Data)
	return errors.Is(err, fs.ErrNotExist)
}

// backups reports whether the server makes the backups that it is configured to make.
func (d *doctor) backups(context.Context) {
	const check = "backups"
	every := time.Duration(d.Config.Backup.Every)
	if every == 0 {
		return
	}
	folder := server.BackupFolder(d.Config)
	if failure, failed := backup.FailureOf(folder); failed {
		d.report(Finding{check, Problem, fmt.Sprintf("the latest backup, at %s, was not made: %s", failure.At.Format(time.RFC3339), failure.Error),
			"repair what it says; the server tries again every few minutes, and `luanette backup FILE` at once"})
		return
	}
	newest := backup.Latest(folder)
	switch late := backup.Late(folder, every, time.Now()); {
	case newest == "":
		d.report(Finding{check, Note, "none yet in " + folder + "; a server makes the first when it starts", ""})
	case late > every && d.server != nil:
		d.report(Finding{check, Problem, fmt.Sprintf("the newest is %s, and one is due every %s", newest, every), "the log of the server says why it makes none; `luanette backup FILE` makes one at once"})
	case late > every:
		d.report(Finding{check, Warning, fmt.Sprintf("the newest is %s, and one is due every %s", newest, every), "start the server: it makes one at once"})
	default:
		d.ok(check, "the newest is %s", newest)
	}
}

// keys reports how many keys there are, and whether one is needed.
func (d *doctor) keys(ctx context.Context) {
	const check = "keys"
	if d.foreign && !d.serves() || d.Server == "" && d.isFresh() {
		return
	}
	list, err := d.listKeys(ctx)
	switch {
	case d.Server != "" && fault.CodeOf(err) == fault.Denied:
		return // they are for administrators
	case err != nil:
		d.failed(check, err)
		return
	}
	active := 0
	for _, key := range list {
		switch key.State {
		case "active":
			active++
		case "expired":
			d.report(Finding{check, Warning, "the key " + key.Name + " has expired", "revoke it: luanette key revoke " + key.Name})
		}
	}
	d.whoIsServed(check, active)
}

// whoIsServed says whom the server serves with so many keys.
func (d *doctor) whoIsServed(check string, active int) {
	switch {
	case active > 0:
		d.ok(check, "%d active; clients over HTTP need one", active)
	case d.Server != "": // the configuration that says whom it serves without is its own
	case len(d.Config.Identity)+len(d.Config.Issuers) > 0:
		names := slices.Sorted(maps.Keys(d.Config.Identity))
		names = append(names, slices.Sorted(maps.Keys(d.Config.Issuers))...)
		d.ok(check, "none; people sign in with %s, and nobody else is served", strings.Join(names, ", "))
	case config.ListensLocally(d.Config.Listen):
		d.report(map[owner.Local]Finding{
			owner.AsGuest: {check, Note, "none; programs on this machine may use tools", ""},
			owner.AsNone:  {check, Note, "none; only the owner of the machine is served", ""},
			owner.AsOwner: {check, Warning, `none, and every program on this machine may do everything, start programs too (local = "owner")`, `set local = "guest": docs/security.md`},
		}[owner.Local(d.Config.Local)])
		if d.Config.LocalUsers == config.LocalAll {
			d.report(Finding{check, Warning, `all users of this machine may use the tools (local_users = "all")`, `set local_users = "own", or make keys: luanette key create`})
		}
	default:
		d.report(Finding{check, Problem, "none, and other machines can reach " + d.Config.Listen, "make one: luanette key create admin --scope admin"})
	}
}

// listKeys lists the keys of the running server, or those in the database.
func (d *doctor) listKeys(ctx context.Context) (list []httpauth.KeyView, err error) {
	address, access := d.Server, d.Access
	if d.foreign {
		address = d.server.Address()
	}
	keys, err := client.ConnectKeys(address, access)
	if address == "" {
		keys, err = client.OpenKeys(ctx, d.Config, d.Env)
	}
	if err != nil {
		return nil, err
	}
	list, err = keys.List(ctx)
	return list, errors.Join(err, keys.Close())
}
