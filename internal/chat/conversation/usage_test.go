package conversation_test

import (
	"testing"
	"time"

	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/spending"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestUsageOfEarlierVersions checks that what earlier versions counted is reported, once.
func TestUsageOfEarlierVersions(t *testing.T) {
	t.Parallel()
	url := store(t)
	_, stop := open(t, url, echo, conversation.Options{})
	stop()
	database := dbtest.OpenWith(t, url, db.Options{})
	err := database.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO talk_usage (org, person, day, turns, input, output, cache_read, cache_write, cost)
			VALUES ('acme', 'ann', 20000, 3, 30, 6, 5, 4, 1.5), ('acme', 'bob', 20001, 1, 10, 2, 0, 0, 0.5)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, stop := open(t, url, echo, conversation.Options{})
		stop()
	}
	counted, err := spending.Open(t.Context(), database, spending.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := counted.Report(t.Context(), spending.Query{Org: "acme", Since: time.Unix(0, 0)})
	if err != nil || report.Total.Turns != 4 || report.Total.Input != 40 || report.Total.Cost != 2 || len(report.Days) != 2 || len(report.People) != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}
