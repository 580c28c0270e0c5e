package artifact

import (
	"context"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Erasing erases what tables of Personal do not: the words of a person's artifacts in the
// index, and the bytes of contents that only this person had.
type Erasing struct{ *Store }

// Export writes nothing: the rows say what is stored.
func (e Erasing) Export(context.Context, personal.Person, func(kind string, value any) error) error {
	return nil
}

// Erase deletes the words, takes the person's contents from them, and removes what nobody
// needs any more. The bytes of artifacts go when it is called again, after their rows.
func (e Erasing) Erase(ctx context.Context, p personal.Person) error {
	names, number := e.words.tables()
	tables := []personal.Table{
		{Name: "org_storage", Where: "org IN (SELECT org FROM content_owners WHERE " + ofPerson + ")"}, // it is counted again
		{Name: "content_owners", Where: ofPerson},
	}
	for _, name := range names {
		tables = append(tables, personal.Table{Name: name, Where: number + " IN (SELECT number FROM artifacts WHERE " + ofPerson + orCreator + ")"})
	}
	err := e.db.Write(ctx, func(tx *db.Tx) error {
		for _, table := range tables {
			if _, err := table.Erase(ctx, tx, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = e.words.purge(ctx, e.db)
	}
	if err == nil {
		_, err = e.Collect(ctx)
	}
	return err
}
