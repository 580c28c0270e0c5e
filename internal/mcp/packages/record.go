package packages

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
)

// Record is one package that is installed, with everything it depends on.
type Record struct {
	Spec      string    `json:"spec"` // as it is configured
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Integrity string    `json:"integrity"`
	Bin       string    `json:"bin"`           // the program, below the folder
	Options   []string  `json:"options"`       // of node; null: the program runs without node
	Folder    string    `json:"folder"`        // below that of the store
	Lock      string    `json:"lock_sha256"`   // of its package-lock.json
	Packages  int       `json:"packages"`      // how many there are in the folder
	MB        int       `json:"mb"`            // its size
	Node      string    `json:"node"`          // with which it was installed
	ABI       string    `json:"abi,omitempty"` // of node, if it has compiled parts
	Platform  string    `json:"platform"`
	Scripts   []string  `json:"scripts,omitempty"` // install scripts that were run
	Skipped   []string  `json:"skipped,omitempty"` // and those that were not, as nobody has allowed them
	Engines   string    `json:"engines,omitempty"` // the versions of node that it wants, if it is not this one
	Installed time.Time `json:"installed_at"`
	Repaired  bool      `json:"repaired,omitempty"` // it was installed a second time, as it was broken
	Previous  *Record   `json:"previous,omitempty"`
}

// Start is the command that runs it, for people.
func (r Record) Start() string {
	if r.Options == nil {
		return filepath.Join(r.Folder, r.Bin)
	}
	return strings.Join(append(append([]string{"node"}, r.Options...), filepath.Join(r.Folder, r.Bin)), " ")
}

// records is the lock file of a store.
type records struct {
	Version  int               `json:"version"`
	Packages map[string]Record `json:"packages"` // by Request.Key
}

// LockFile is the name of the file with the records.
const LockFile = "packages.lock.json"

// All returns what is installed, by Request.Key.
func (s *Store) All() (map[string]Record, error) {
	list, err := s.read()
	return list.Packages, err
}

func (s *Store) read() (records, error) {
	empty := records{Version: 1, Packages: map[string]Record{}}
	text, err := os.ReadFile(s.path(LockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fault.Wrap(fault.Unavailable, err, "read the list of installed packages")
	}
	list := empty
	if err := json.Unmarshal(text, &list); err != nil || list.Version != 1 {
		return empty, fault.New(fault.Unavailable, "%s is not a list of installed packages of this version", s.path(LockFile)).
			WithHint("remove the file: packages are installed again when they are needed")
	}
	return list, nil
}

// keep makes a record the one in effect.
func (s *Store) keep(ctx context.Context, key string, record Record) error {
	return s.change(ctx, func(all map[string]Record) { all[key] = record })
}

// change changes the records, one process at a time.
func (s *Store) change(ctx context.Context, how func(map[string]Record)) error {
	lock, err := filelock.Wait(context.WithoutCancel(ctx), s.path("locks", "records")) // others hold it for milliseconds
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "lock the list of installed packages")
	}
	defer func() { _ = lock.Unlock() }()
	list, err := s.read()
	if err != nil {
		return err
	}
	how(list.Packages)
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Internal, err, "write the list of installed packages")
	}
	if err := replaceFile(s.path(LockFile), append(text, '\n')); err != nil {
		return fault.Wrap(fault.Unavailable, err, "write the list of installed packages")
	}
	return nil
}

// replaceFile writes a file so that it has either its old or its new content.
func replaceFile(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// usable reports whether the files of a record are there, and fit the node of the request.
func (s *Store) usable(r Request, record Record) bool {
	if !exists(s.path(record.Folder, record.Bin)) {
		return false
	}
	if record.ABI == "" {
		return true
	}
	node, err := askNode(r.Start)
	return err != nil || node.ABI == record.ABI
}

// Program is what starts an installed package.
type Program struct {
	Command string
	Args    []string
	Env     []string
}

// Program returns what to start for a request. The program finds the programs of its own
// packages, as with npx; it does not get what npm knows of registries.
func (s *Store) Program(r Request, record Record) Program {
	modules, file := s.path(record.Folder, "node_modules", ".bin"), s.path(record.Folder, record.Bin)
	p := Program{Command: file, Args: r.Args}
	if record.Options != nil {
		p.Command, p.Args = "node", append(append(append([]string{}, record.Options...), file), r.Args...)
	}
	for _, entry := range r.Start.Env {
		if name, _, _ := strings.Cut(entry, "="); name != "PATH" && !isSettingOfNPM(entry) {
			p.Env = append(p.Env, entry)
		}
	}
	p.Env = append(p.Env, "PATH="+modules+string(os.PathListSeparator)+r.Start.Path)
	return p
}
