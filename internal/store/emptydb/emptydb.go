// Package emptydb has the content of a new database: a SQLite file with all tables of a
// server, as their migrations make them. Copying it takes a tenth of the time.
package emptydb

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
)

// compressed is made and checked by TestEmptyDatabase of internal/server. If it lacks a
// migration, that one runs when the server starts.
//
//go:embed empty.db.gz
var compressed []byte

// Content returns the content of the file.
func Content() ([]byte, error) {
	in, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("read the empty database: %w", err)
	}
	content, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("read the empty database: %w", err)
	}
	return content, nil
}
