package db

import (
	"io"
	"io/fs"
	"regexp"
	"strings"
	"sync"
)

// textColumn matches a text column as our migrations write it.
var textColumn = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)((?:^\s*|[(,]\s*|ADD COLUMN )[a-z_]+\s+)TEXT\b`) })

// collated are migrations whose text columns are compared byte by byte, as SQLite does,
// whatever the locale of the Postgres database.
type collated struct{ fs.FS }

// Open opens a file, or the folder. It adds the collation to SQL files.
func (c collated) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return collatedFile{f, strings.NewReader(textColumn().ReplaceAllString(string(text), `${1}TEXT COLLATE "C"`))}, nil
}

type collatedFile struct {
	fs.File
	text *strings.Reader
}

func (f collatedFile) Read(p []byte) (int, error) { return f.text.Read(p) }
