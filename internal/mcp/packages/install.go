package packages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Waits is reported of an installation that waits for its turn.
const Waits = "waits until other packages are installed"

// locked does something that changes what is installed for a request: one process at a time for
// each request, and all processes together not more at once than the store allows.
func (s *Store) locked(ctx context.Context, r Request, report func(string), do func() (Record, error)) (Record, error) {
	report(Waits)
	lock, err := filelock.Wait(ctx, s.path("locks", r.digest()))
	if err != nil {
		return Record{}, fault.Wrap(fault.Unavailable, err, "install %s", r.Specs[0])
	}
	defer func() { _ = lock.Unlock() }()
	select {
	case s.turns <- struct{}{}: // only these look at the files
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return Record{}, context.Cause(ctx)
	}
	slot, err := filelock.Wait(ctx, s.slots...)
	if err != nil {
		return Record{}, fault.Wrap(fault.Unavailable, err, "install %s", r.Specs[0])
	}
	defer func() { _ = slot.Unlock() }()
	s.clean(r.digest())
	defer s.clean(r.digest()) // npm of a process that was killed may have written for a moment longer
	return do()
}

// digest names the lock and the temporary folders of a request.
func (r Request) digest() string {
	sum := sha256.Sum256([]byte(r.Key()))
	return hex.EncodeToString(sum[:8])
}

// clean removes what interrupted installations of a request have left; its lock is held.
func (s *Store) clean(digest string) {
	left, _ := filepath.Glob(s.path("tmp", digest+"-*")) // the pattern is valid
	for _, folder := range left {
		_ = os.RemoveAll(folder) // the next one tries again
	}
}

// CleanUp removes what interrupted installations have left, except of those that run.
func (s *Store) CleanUp() {
	left, _ := os.ReadDir(s.path("tmp")) // without the folder there is nothing
	for _, entry := range left {
		digest, _, _ := strings.Cut(entry.Name(), "-")
		lock, err := filelock.Try(s.path("locks", digest))
		if err != nil || lock == nil {
			continue
		}
		s.clean(digest)
		_ = lock.Unlock()
	}
}

// attempt is one installation in a temporary folder.
type attempt struct {
	store   *Store
	request Request
	folder  string
	report  func(string)
	node    node
	engines map[string]string // that packages want, by name@version, if it is not this node
}

// begin makes the folder of an installation. The caller removes it.
func (s *Store) begin(r Request, report func(string)) (*attempt, error) {
	if err := os.MkdirAll(s.path("tmp"), 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "install %s", r.Specs[0])
	}
	folder, err := os.MkdirTemp(s.path("tmp"), r.digest()+"-*")
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "install %s", r.Specs[0])
	}
	a := &attempt{store: s, request: r, folder: folder, report: report, engines: map[string]string{}}
	a.node, err = askNode(r.Start)
	return a, err
}

// install installs specs and returns the record, which is not in effect yet. integrity is that
// which the first package must have; empty: any.
func (s *Store) install(ctx context.Context, r Request, specs []string, integrity string, report func(string)) (Record, error) {
	a, err := s.begin(r, report)
	if a != nil {
		defer func() { _ = os.RemoveAll(a.folder) }()
	}
	if err != nil {
		return Record{}, err
	}
	report("resolving")
	manifest := `{"name":"installed","private":true,"description":"installed by luanette; packages.lock.json says for what"}`
	if err := os.WriteFile(filepath.Join(a.folder, "package.json"), []byte(manifest), 0o600); err != nil {
		return Record{}, fault.Wrap(fault.Unavailable, err, "install %s", r.Specs[0])
	}
	args := append([]string{"install", "--save", "--save-exact", "--package-lock"}, append(npmFlags(), specs...)...)
	if err := a.npm(ctx, args...); err != nil {
		return Record{}, err
	}
	record, err := a.finish(ctx)
	if err == nil && integrity != "" && record.Integrity != integrity {
		return Record{}, fault.New(fault.Unavailable, "%s@%s of the registry is not what was installed before: its checksum is %s instead of %s",
			record.Name, record.Version, record.Integrity, integrity).
			WithHint("somebody has changed a published package; if you trust it, use another version: luanette upstream upgrade NAME --to VERSION")
	}
	if err != nil {
		return Record{}, err
	}
	return a.move(record, false)
}

// restore installs what a record says once more: the same packages, with the same checksums.
func (s *Store) restore(ctx context.Context, r Request, old Record, report func(string)) (Record, error) {
	manifest, lock, err := s.lockOf(old)
	var record Record
	if err == nil && digestOf(lock) == old.Lock {
		record, err = s.installLocked(ctx, r, lock, manifest, report)
	} else {
		specs := append([]string{old.Name + "@" + old.Version}, r.Specs[1:]...)
		record, err = s.install(ctx, r, specs, old.Integrity, report)
	}
	if err != nil {
		return Record{}, err
	}
	record.Repaired, record.Previous = true, old.Previous
	return record, s.keep(ctx, r.Key(), record)
}

// digestOf identifies a file.
func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// installLocked installs exactly the packages of a lock file.
func (s *Store) installLocked(ctx context.Context, r Request, lock, manifest []byte, report func(string)) (Record, error) {
	a, err := s.begin(r, report)
	if a != nil {
		defer func() { _ = os.RemoveAll(a.folder) }()
	}
	if err != nil {
		return Record{}, err
	}
	report("installing what is locked")
	err = errors.Join(os.WriteFile(filepath.Join(a.folder, "package-lock.json"), lock, 0o600),
		os.WriteFile(filepath.Join(a.folder, "package.json"), manifest, 0o600))
	if err != nil {
		return Record{}, fault.Wrap(fault.Unavailable, err, "install %s", r.Specs[0])
	}
	if err := a.npm(ctx, append([]string{"ci"}, npmFlags()...)...); err != nil {
		return Record{}, err
	}
	record, err := a.finish(ctx)
	if err != nil {
		return Record{}, err
	}
	return a.move(record, true)
}

// npmFlags make npm do the same whatever the user has configured, except where packages come
// from. No script runs: those that are allowed run later, in a sandbox.
func npmFlags() []string {
	return []string{
		"--ignore-scripts", "--omit=dev", "--install-strategy=hoisted", "--no-audit", "--no-fund", "--no-progress",
		"--no-update-notifier", "--loglevel=http", "--no-dry-run",
	}
}

// lockFile is what is used of package-lock.json.
type lockFile struct {
	Packages map[string]lockedPackage `json:"packages"`
}

type lockedPackage struct {
	Version   string `json:"version"`
	Integrity string `json:"integrity"`
	Link      bool   `json:"link"`
	Script    bool   `json:"hasInstallScript"`
	Resolved  string `json:"resolved"`
}

// finish checks what npm has installed, runs the install scripts that are allowed, and makes
// the record.
func (a *attempt) finish(ctx context.Context) (Record, error) {
	r := a.request
	text, err := os.ReadFile(filepath.Join(a.folder, "package-lock.json"))
	var lock lockFile
	if err == nil {
		err = json.Unmarshal(text, &lock)
	}
	if err != nil {
		return Record{}, fault.Wrap(fault.Unavailable, err, "read what npm has installed for %s", r.Specs[0])
	}
	name := NameOf(r.Specs[0])
	top, found := lock.Packages["node_modules/"+name]
	if !found || top.Integrity == "" {
		return Record{}, fault.New(fault.Unavailable, "npm has installed %s without a checksum", r.Specs[0]).WithHint("install = \"off\" lets npx run it")
	}
	record := Record{
		Spec: strings.Join(r.Specs, " "), Name: name, Version: top.Version, Integrity: top.Integrity, Lock: digestOf(text),
		Node: a.node.Version, Platform: runtime.GOOS + "-" + runtime.GOARCH, Installed: time.Now().UTC().Truncate(time.Second),
		Engines: a.engines[name+"@"+top.Version], Packages: len(lock.Packages) - 1,
	}
	if record.Bin, record.Options, err = a.findBin(); err != nil {
		return Record{}, err
	}
	if err := a.runScripts(ctx, lock, &record); err != nil {
		return Record{}, err
	}
	compiled, size := measure(a.folder)
	record.MB = int((size + 1<<20 - 1) >> 20)
	if compiled {
		record.ABI = a.node.ABI
	}
	sum := sha256.Sum256(fmt.Append(nil, record.Lock, record.ABI, record.Platform, record.Scripts))
	record.Folder = filepath.Join("npm", strings.ReplaceAll(name, "/", "+"), record.Version+"-"+hex.EncodeToString(sum[:6]))
	return record, nil
}

// runScripts runs the install scripts of the packages that may have them run, in a sandbox in
// which they may write to the package's folder only.
func (a *attempt) runScripts(ctx context.Context, lock lockFile, record *Record) error {
	for path, p := range lock.Packages {
		parts := strings.Split(path, "node_modules/")
		name := parts[len(parts)-1]
		switch {
		case !p.Script || !exists(filepath.Join(a.folder, path)):
		case slices.Contains(a.request.Start.Scripts, name):
			record.Scripts = append(record.Scripts, name+"@"+p.Version)
		default:
			record.Skipped = append(record.Skipped, name+"@"+p.Version)
		}
	}
	slices.Sort(record.Scripts)
	slices.Sort(record.Skipped)
	for _, one := range record.Scripts {
		a.report("runs the install script of " + one)
		if err := a.runScript(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) runScript(ctx context.Context, one string) error {
	npm, err := findIn(a.request.Start.Path, "npm")
	if err != nil {
		return missing("npm")
	}
	limits := profile.Profile{Name: "install-" + NameOf(one), Level: profile.Open, Write: []string{a.folder}}
	cmd, err := a.store.options.Sandbox.CommandContext(ctx, limits, launch.Program{
		Path: npm, Args: []string{"npm", "rebuild", NameOf(one), "--ignore-scripts=false", "--foreground-scripts", "--no-update-notifier"},
		Env: a.request.environment(), Dir: a.folder,
	})
	if err != nil {
		return err
	}
	var said output
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fault.Wrap(fault.Unavailable, fmt.Errorf("%w: %s", err, said.last()), "install script of %s", one).
			WithHint("it runs in a sandbox; without it: leave %s out of install_scripts", NameOf(one))
	}
	return nil
}

// measure returns whether there are compiled parts for node in a folder, and its size.
func measure(folder string) (compiled bool, size int64) {
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // npm may have removed it meanwhile
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
			compiled = compiled || strings.HasSuffix(path, ".node")
		}
		return nil
	})
	return compiled, size
}

// move puts the installation to its place. again replaces one that is broken; otherwise the
// same packages may be there for another request.
func (a *attempt) move(record Record, again bool) (Record, error) {
	final := a.store.path(record.Folder)
	err := os.MkdirAll(filepath.Dir(final), 0o700)
	if err == nil && again && exists(final) {
		err = os.Rename(final, a.folder+"-replaced")
		defer func() { _ = os.RemoveAll(a.folder + "-replaced") }()
	}
	if err == nil && !exists(final) {
		err = os.Rename(a.folder, final)
	}
	if err != nil {
		return Record{}, fault.Wrap(fault.Unavailable, err, "install %s", record.Spec)
	}
	return record, nil
}
