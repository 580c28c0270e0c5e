package audit

import (
	"testing"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// Either database can take pages apart, as docs/decisions/012 has it.
func TestEntriesInSQL(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		bound(t, d, "a")
		query := `SELECT sum(e.value ->> 'took_us') FROM audit_pages, json_each('[' || replace(rtrim(entries, char(10)), char(10), ',') || ']') AS e`
		if d.Kind() == db.Postgres {
			query = `SELECT sum((line::jsonb ->> 'took_us')::BIGINT) FROM audit_pages, regexp_split_to_table(rtrim(entries, chr(10)), chr(10)) AS line`
		}
		var sum float64
		err := d.Read(t.Context(), func(tx *db.Tx) error { return tx.QueryRow(t.Context(), query).Scan(&sum) })
		if err != nil || sum != 78 {
			t.Errorf("sum %v, %v", sum, err)
		}
	})
}
