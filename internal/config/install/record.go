package install

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/config/clientfile"
)

// backupSuffix is appended to a file's name for the copy beside it.
const backupSuffix = ".luanette-backup"

// sumChanged is the sum of a file that the client changed between two of our changes:
// its original bytes must not be restored any more.
const sumChanged = "changed"

// installation is the record of a changed file.
type installation struct {
	Client   string       `json:"client"`
	Path     string       `json:"path"`
	Absent   bool         `json:"absent"` // there was no file
	Original []byte       `json:"original,omitempty"`
	Folders  []string     `json:"folders,omitempty"` // that were created for it, the innermost first
	Sum      string       `json:"sum"`               // of what we wrote
	Added    []string     `json:"added"`             // the path of our entry
	Present  int          `json:"present"`           // how many keys of it existed before
	Listed   bool         `json:"listed,omitempty"`  // our entry is in a list
	Removed  []movedEntry `json:"removed,omitempty"` // entries that we removed or replaced
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// recordPath returns the file of a record. The name is made of the path, so that one
// client may have several.
func recordPath(folder, client, path string) string {
	return filepath.Join(folder, client+"-"+sumOf([]byte(path))[:12]+".json")
}

// record returns the record of a file; its Path is "" if there is none.
func (i Installer) record(client, path string) (r installation, err error) {
	text, err := os.ReadFile(recordPath(i.Records, client, path))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fault.Wrap(fault.Config, err, "read what was installed").WithHint("remove that file; then only our entry is removed from %s", path)
	}
	return r, nil
}

// next returns the record of another change: what the first one found stays.
func (r installation) next(before snapshot, path string, plan edited) installation {
	next := r
	if r.Path == "" {
		next = installation{
			Path: path, Absent: before.text == nil, Original: before.text, Folders: before.missing,
			Added: plan.path, Present: plan.present, Listed: plan.listed,
		}
		if plan.replaced != nil {
			next.Removed = append(next.Removed, movedEntry{plan.path, plan.replaced})
		}
	} else if sumOf(before.text) != r.Sum {
		next.Sum = sumChanged
	}
	next.Removed = append(next.Removed, plan.moved...)
	return next
}

func (r installation) write(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "store what the file was")
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return snapshot{mode: 0o600}.write(recordPath(folder, r.Client, r.Path), append(text, '\n'))
}

// writeBackup writes a copy beside the file, unless there is one already.
func (r installation) writeBackup(before snapshot) error {
	path := r.Path + backupSuffix
	if _, err := os.Lstat(path); err == nil || before.text == nil {
		return nil
	}
	return snapshot{mode: before.mode}.write(path, before.text)
}

// forget removes the record and the copy.
func (r installation) forget(folder string) error {
	for _, path := range []string{recordPath(folder, r.Client, r.Path), r.Path + backupSuffix} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Config, err, "remove what was stored")
		}
	}
	return nil
}

// undo puts the file back.
func (r installation) undo(dryRun bool) (Result, error) {
	now, err := readFile(r.Path)
	result := Result{Client: r.Client, Path: r.Path, Before: now.text, After: now.text}
	if err != nil || now.text == nil {
		return result, err
	}
	if r.Sum != "" && sumOf(now.text) == r.Sum {
		result.After = r.Original
		if r.Absent {
			result.After = nil
		}
	} else if result.After, err = r.without(now.text); err != nil {
		return result, err
	} else {
		result.Cut = true
	}
	switch {
	case dryRun || !result.Changed():
		return result, nil
	case result.After == nil:
		return result, r.remove()
	default:
		return result, now.write(r.Path, result.After)
	}
}

// remove removes a file that we created, with the folders that we created for it as
// far as they are empty.
func (r installation) remove() error {
	if err := os.Remove(r.Path); err != nil {
		return fault.Wrap(fault.Config, err, "remove what was installed")
	}
	removeEmpty(r.Folders)
	return nil
}

// removeEmpty removes folders, the innermost first, until something else is in one.
func removeEmpty(folders []string) {
	for _, folder := range folders {
		if os.Remove(folder) != nil {
			return
		}
	}
}

// without returns a text without our entry and with the entries that we removed, or nil
// if we created the file and nothing else is in it.
func (r installation) without(text []byte) ([]byte, error) {
	syntax := clientfile.SyntaxOf(r.Path)
	document, err := syntax.Decode(text)
	if err != nil {
		return nil, unreadable(r.Path, err)
	}
	if at(document, r.Added) != nil {
		if text, err = syntax.Cut(text, r.Added); err != nil {
			return nil, unreadable(r.Path, err)
		}
	}
	if text, err = r.cutParents(syntax, text); err != nil {
		return nil, unreadable(r.Path, err)
	}
	if text, err = r.putBack(syntax, text); err != nil {
		return nil, unreadable(r.Path, err)
	}
	if document, err = syntax.Decode(text); err == nil && r.Absent && rawjson.IsEmptyObject(document) {
		return nil, nil
	}
	return text, err
}

// cutParents removes the parents of our entry that we created, if they are empty.
func (r installation) cutParents(syntax clientfile.Syntax, text []byte) ([]byte, error) {
	for i := len(r.Added) - 1; i > r.Present; i-- {
		document, err := syntax.Decode(text)
		if parent := at(document, r.Added[:i]); err != nil || !rawjson.IsEmptyObject(parent) && string(parent) != "[]" {
			return text, err
		}
		if text, err = syntax.Cut(text, r.Added[:i]); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// putBack adds the entries that we removed, unless there are others of their names.
func (r installation) putBack(syntax clientfile.Syntax, text []byte) ([]byte, error) {
	for _, entry := range slices.Backward(r.Removed) {
		document, err := syntax.Decode(text)
		if err != nil {
			return nil, err
		}
		if entry.Entry == nil || at(document, entry.Path) != nil {
			continue
		}
		if text, err = syntax.Put(text, entry.Path, entry.Entry, r.Listed); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// snapshot is a file as it is on disk.
type snapshot struct {
	text    []byte // nil if there is none
	mode    fs.FileMode
	target  string   // the file that a symbolic link points to
	missing []string // folders that do not exist, the innermost first
}

func readFile(path string) (snapshot, error) {
	s := snapshot{mode: 0o600}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
			if _, err := os.Stat(folder); err == nil || folder == filepath.Dir(folder) {
				return s, nil
			}
			s.missing = append(s.missing, folder)
		}
	}
	if err != nil {
		return s, fault.Wrap(fault.Config, err, "read the client's configuration")
	}
	info, err := os.Stat(path)
	if err != nil {
		return s, fault.Wrap(fault.Config, err, "read the client's configuration")
	}
	if s.text, s.mode = text, info.Mode().Perm(); text == nil {
		s.text = []byte{}
	}
	if s.target, err = filepath.EvalSymlinks(path); err != nil {
		return s, fault.Wrap(fault.Config, err, "read the client's configuration")
	}
	return s, nil
}

// write replaces the file in one step. It keeps the mode, and a symbolic link.
func (s snapshot) write(path string, text []byte) error {
	if s.target != "" {
		path = s.target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fault.Wrap(fault.Config, err, "write %s", path)
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), ".luanette-*")
	if err != nil {
		return fault.Wrap(fault.Config, err, "write %s", path)
	}
	_, err = fresh.Write(text)
	err = errors.Join(err, fresh.Chmod(s.mode), fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return fault.Wrap(fault.Config, errors.Join(err, os.Remove(fresh.Name())), "write %s", path)
	}
	return nil
}
