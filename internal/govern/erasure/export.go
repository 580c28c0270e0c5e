package erasure

import (
	"context"
	"encoding/json"
	"io"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Line is one line of an export.
type Line struct {
	Kind  string `json:"kind"` // the table, or what a Part calls it
	Value any    `json:"value"`
}

// Export writes everything of a person as JSON lines, without tokens and other secrets.
func (s *Service) Export(ctx context.Context, id string, to io.Writer) error {
	p, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	out := json.NewEncoder(to)
	write := func(kind string, value any) error { return out.Encode(Line{kind, value}) }
	tables, err := s.tables(ctx)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if err := s.exportTable(ctx, table, p, write); err != nil {
			return err
		}
	}
	for _, part := range s.options.Parts {
		if err := part.Export(ctx, p, write); err != nil {
			return err
		}
	}
	s.options.Audit(ctx, "person.export", id, nil)
	return nil
}

// exportTable writes the rows of one table. They are read before they are written, since a
// slow reader must not hold a transaction.
func (s *Service) exportTable(ctx context.Context, table personal.Table, p personal.Person, write func(kind string, value any) error) error {
	var rows []personal.Row
	err := s.db.Read(ctx, func(tx *db.Tx) error {
		rows = nil
		return table.Export(ctx, tx, p, func(row personal.Row) error {
			rows = append(rows, row)
			return nil
		})
	})
	for _, row := range rows {
		if err == nil {
			err = write(row.Table, row.Values)
		}
	}
	return err
}
