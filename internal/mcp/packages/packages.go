// Package packages installs the npm packages that upstreams run, so that their servers
// start as `node FILE` instead of through npx. npx asks the registry with every start, keeps
// a process of npm beside the server, and leaves a broken folder when it is killed.
//
// Parse recognises a command that means npx. A Store installs its package with npm in a
// folder of its own, renames the folder to its place and writes a record. The record is the
// truth: a folder without one is of an installation that was interrupted, and is removed.
package packages

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/launch"
)

// What Settings.Install of an upstream may be.
const (
	Auto = "auto" // packages that npx would run are installed
	Off  = "off"  // npx itself runs
)

// CheckInstall refuses a value that does not exist.
func CheckInstall(value string) error {
	if value == "" || value == Auto || value == Off {
		return nil
	}
	return fault.New(fault.Config, "install %q", value).WithHint("use \"auto\", or \"off\" to run npx itself")
}

// Options configure a Store.
type Options struct {
	Folder   string           // of everything that is installed
	Parallel int              // how many are installed at a time, by all processes; zero: one
	Log      *slog.Logger     // nil: no log
	Sandbox  *launch.Launcher // of install scripts; nil: they do not run
	// Stalled is how long npm may take without making progress; zero: 10 min.
	Stalled time.Duration
}

// Store is a folder with installed packages. Several processes may use the same folder.
type Store struct {
	options Options
	turns   chan struct{} // of installations by this process
	slots   []string      // files; an installation holds the lock of one

	mu        sync.Mutex
	proposals map[string]Record // that count instead of what is recorded; see Propose
}

// New returns the store of a folder, which is made with the first installation.
func New(o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Stalled <= 0 {
		o.Stalled = 10 * time.Minute
	}
	s := &Store{options: o, turns: make(chan struct{}, max(o.Parallel, 1)), proposals: map[string]Record{}}
	for n := range cap(s.turns) {
		s.slots = append(s.slots, s.path("locks", "slot-"+strconv.Itoa(n)))
	}
	return s
}

// Folder is where everything is installed.
func (s *Store) Folder() string { return s.options.Folder }

func (s *Store) path(names ...string) string {
	return filepath.Join(append([]string{s.options.Folder}, names...)...)
}

// Find returns what is installed for a request.
func (s *Store) Find(r Request) (Record, bool) {
	key := r.Key()
	s.mu.Lock()
	proposed, is := s.proposals[key]
	s.mu.Unlock()
	if is {
		return proposed, true
	}
	list, err := s.read()
	if err != nil {
		return Record{}, false
	}
	found, ok := list.Packages[key]
	return found, ok
}

// Propose lets this store, and no other of the same folder, use a record that is not in effect
// yet: an upgrade is tried before it counts.
func (s *Store) Propose(key string, record Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proposals[key] = record
}

// Ensure returns the installed package of a request, and installs it first if it is missing
// or was removed. report is told what is being done.
func (s *Store) Ensure(ctx context.Context, r Request, report func(string)) (Record, error) {
	if found, ok := s.Find(r); ok && s.usable(r, found) {
		return found, nil
	}
	return s.locked(ctx, r, report, func() (Record, error) {
		found, known := s.Find(r)
		switch {
		case known && s.usable(r, found): // another process was faster
			return found, nil
		case known:
			return s.restore(ctx, r, found, report)
		}
		record, err := s.install(ctx, r, r.Specs, "", report)
		if err != nil {
			return Record{}, err
		}
		return record, s.keep(ctx, r.Key(), record)
	})
}

// Repair installs a package anew, from its lock file, after its server has failed in a way
// that a broken installation explains. It does that once for each installation.
func (s *Store) Repair(ctx context.Context, r Request, broken Record, report func(string)) (Record, bool, error) {
	if broken.Repaired {
		return broken, false, nil
	}
	record, err := s.locked(ctx, r, report, func() (Record, error) {
		if now, ok := s.Find(r); ok && now.Repaired { // another process was faster
			return now, nil
		}
		return s.restore(ctx, r, broken, report)
	})
	return record, err == nil, err
}
