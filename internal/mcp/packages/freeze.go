package packages

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/luanette/luanette/internal/base/fault"
)

// Frozen is an installation that another machine can repeat, with every package that it consists
// of.
type Frozen struct {
	Name      string          `json:"name"`
	Version   string          `json:"version"`
	Integrity string          `json:"integrity"`
	Manifest  json.RawMessage `json:"package.json"`
	Lock      json.RawMessage `json:"package-lock.json"`
}

// FrozenFile is a file with installations that several machines are to have.
type FrozenFile struct {
	Version  int               `json:"version"`
	Packages map[string]Frozen `json:"packages"` // by Request.Key
}

// Freeze returns an installation as another machine can repeat it.
func (s *Store) Freeze(record Record) (Frozen, error) {
	manifest, lock, err := s.lockOf(record)
	if err != nil {
		return Frozen{}, fault.Wrap(fault.Unavailable, err, "read what is installed for %s", record.Spec)
	}
	return Frozen{record.Name, record.Version, record.Integrity, manifest, lock}, nil
}

// lockOf reads the files of an installation from which npm repeats it.
func (s *Store) lockOf(record Record) (manifest, lock []byte, err error) {
	if manifest, err = os.ReadFile(s.path(record.Folder, "package.json")); err != nil {
		return nil, nil, err
	}
	lock, err = os.ReadFile(s.path(record.Folder, "package-lock.json"))
	return manifest, lock, err
}

// Write writes the file, so that versions of it can be compared line by line.
func (f FrozenFile) Write(to io.Writer) error {
	out := json.NewEncoder(to)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(f)
}

// ReadFrozen reads a file of Write.
func ReadFrozen(from io.Reader) (f FrozenFile, err error) {
	if err := json.NewDecoder(from).Decode(&f); err != nil || f.Version != 1 {
		return f, fault.New(fault.InvalidParams, "this is no file of luanette upstream freeze of this version")
	}
	return f, nil
}

// Thaw installs exactly what was frozen and makes it the one in effect. The one that was in
// effect stays as the previous.
func (s *Store) Thaw(ctx context.Context, r Request, frozen Frozen, report func(string)) (Record, error) {
	return s.locked(ctx, r, report, func() (Record, error) {
		now, known := s.Find(r)
		lock, manifest := indented(frozen.Lock), indented(frozen.Manifest)
		if known && now.Lock == digestOf(lock) && s.usable(r, now) {
			return now, nil
		}
		record, err := s.installLocked(ctx, r, lock, manifest, report)
		if err != nil {
			return Record{}, err
		}
		if record.Integrity != frozen.Integrity {
			return Record{}, fault.New(fault.Unavailable, "the file says that the checksum of %s@%s is %s, and its lock file says %s",
				frozen.Name, frozen.Version, frozen.Integrity, record.Integrity).WithHint("somebody has edited the file: write it anew with luanette upstream freeze")
		}
		if known && now.Folder != record.Folder {
			now.Previous = nil
			record.Previous = &now
		}
		return record, s.keep(ctx, r.Key(), record)
	})
}

// indented is a file as npm writes it: its digest names the folder of an installation.
func indented(raw json.RawMessage) []byte {
	var text bytes.Buffer
	if json.Indent(&text, raw, "", "  ") != nil {
		return raw // npm refuses it
	}
	return append(text.Bytes(), '\n')
}
