package dbtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/store/db"
)

// TablesWith returns the tables of a database in which a text occurs.
func TablesWith(t testing.TB, url, text string) (found []string) {
	t.Helper()
	err := db.ReadDump(t.Context(), url, func(d *db.Dump) error {
		for _, table := range d.Tables {
			err := d.Rows(t.Context(), table, func(row []any) error {
				for _, v := range row {
					if raw, ok := v.([]byte); ok {
						v = string(raw)
					}
					if strings.Contains(fmt.Sprint(v), text) && !slices.Contains(found, table.Name) {
						found = append(found, table.Name)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
