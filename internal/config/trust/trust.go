// Package trust remembers which parts of configuration files the user trusts. A file that
// came with a folder, such as a cloned repository, may start programs only after the user
// has looked at them, as with direnv.
package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
	"github.com/luanette/luanette/internal/base/realpath"
)

// Item is a part of a configuration file that needs trust.
type Item struct {
	Key  string `json:"key"`  // such as upstreams.files
	Does string `json:"does"` // what it makes the program do, for people
	Hash string `json:"hash"` // of its content
}

// NewItem returns the item of a key. Trust in it ends when its content changes.
func NewItem(key, does string, content any) Item {
	text, _ := json.Marshal([]any{key, content}) // settings always encode
	sum := sha256.Sum256(text)
	return Item{key, does, hex.EncodeToString(sum[:])}
}

// Store is the file in which trust is stored. It belongs to the user, not to a data
// folder, which a configuration file can choose. With an empty path nothing is trusted.
type Store struct{ Path string }

// record is what is trusted in one configuration file.
type record struct {
	Since time.Time         `json:"since"`
	Items map[string]string `json:"items"` // hashes by key
}

// Trusted returns the items of a configuration file that are trusted as they are now, by
// key.
func (s Store) Trusted(file string) (hashes map[string]string, err error) {
	all, err := s.read()
	if err != nil {
		return nil, err
	}
	return all[realpath.Of(file)].Items, nil
}

// Files returns the configuration files in which anything is trusted, with the time of
// the last decision.
func (s Store) Files() (map[string]time.Time, error) {
	all, err := s.read()
	files := map[string]time.Time{}
	for file, r := range all {
		files[file] = r.Since
	}
	return files, err
}

// Add trusts items of a configuration file in addition to those trusted before.
func (s Store) Add(ctx context.Context, file string, items ...Item) error {
	return s.change(ctx, func(all map[string]record) {
		hashes := all[realpath.Of(file)].Items
		if hashes == nil {
			hashes = map[string]string{}
		}
		for _, item := range items {
			hashes[item.Key] = item.Hash
		}
		all[realpath.Of(file)] = record{time.Now().UTC(), hashes}
	})
}

// Remove ends the trust in a configuration file and reports whether there was any.
func (s Store) Remove(ctx context.Context, file string) (removed bool, err error) {
	err = s.change(ctx, func(all map[string]record) {
		_, removed = all[realpath.Of(file)]
		delete(all, realpath.Of(file))
	})
	return removed, err
}

func (s Store) read() (map[string]record, error) {
	all := map[string]record{}
	if s.Path == "" {
		return all, nil
	}
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "read trusted files")
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fault.New(fault.Config, "other users may write to %s, which says what is trusted", s.Path).WithHint("chmod 600 %s", s.Path)
	}
	text, err := os.ReadFile(s.Path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "read trusted files")
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fault.Wrap(fault.Config, err, "read %s", s.Path).WithHint("remove the file; then trust what you need again with `luanette trust`")
	}
	return all, nil
}

// change reads, changes and writes the file while no other process does.
func (s Store) change(ctx context.Context, edit func(map[string]record)) error {
	if s.Path == "" {
		return fault.New(fault.Config, "store trust: there is no folder for it").WithHint("set HOME, or name the configuration file with --config, which trusts it")
	}
	lock, err := filelock.Wait(ctx, s.Path+".lock")
	if err != nil {
		return fault.Wrap(fault.Config, err, "store trust")
	}
	defer func() { _ = lock.Unlock() }() // nothing is lost with it
	all, err := s.read()
	if err != nil {
		return err
	}
	edit(all)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Internal, err, "store trust")
	}
	fresh := s.Path + ".new"
	if err = os.WriteFile(fresh, append(text, '\n'), 0o600); err == nil {
		err = os.Rename(fresh, s.Path)
	}
	if err != nil {
		return fault.Wrap(fault.Config, err, "store trust")
	}
	return nil
}
