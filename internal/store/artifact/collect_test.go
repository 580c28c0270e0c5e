package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/store/personal"
)

// collection is a store with a clock, and two people who use it.
type collection struct {
	*Files
	t        *testing.T
	clock    *clock.Virtual
	ada, bob context.Context
}

// eachDatabase runs a test on both databases.
func eachDatabase(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	for kind, fresh := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

// twoNodes opens the store of a database and a folder twice.
func twoNodes(t *testing.T, url string) (nodes []*Files) {
	t.Helper()
	folder := t.TempDir()
	for range 2 {
		files, err := OpenFiles(t.Context(), dbtest.OpenWith(t, url, db.Options{}), FilesOptions{Folder: folder})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, files)
	}
	return nodes
}

// eachCollection runs a test on both databases, with contents in files and in the database.
func eachCollection(t *testing.T, test func(t *testing.T, c collection)) {
	t.Helper()
	eachDatabase(t, func(t *testing.T, url string) {
		test(t, collectionAt(t, url, false))
	})
	t.Run("in the database", func(t *testing.T) {
		t.Parallel()
		test(t, collectionAt(t, dbtest.Postgres(t), true))
	})
}

func collectionAt(t *testing.T, url string, inDatabase bool) collection {
	t.Helper()
	time := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	files, err := OpenFiles(t.Context(), dbtest.OpenWith(t, url, db.Options{}), FilesOptions{
		Folder: t.TempDir(), InDatabase: inDatabase,
		Options: Options{Clock: time, Columns: []cas.Column{{Table: "wanted", Name: "hash", Where: "wanted"}, {Table: "wanted", Name: "named"}, {Table: "absent", Name: "hash", Where: cas.All}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	as := func(name string) context.Context {
		return principal.With(t.Context(), principal.Principal{ID: "person:" + name + "/acme", Org: "acme"})
	}
	return collection{files, t, time, as("ada"), as("bob")}
}

// store stores a text.
func (c collection) store(who context.Context, text string) cas.Ref {
	c.t.Helper()
	content, err := c.StoreContent(who, strings.NewReader(text), "text/plain")
	if err != nil {
		c.t.Fatal(err)
	}
	return content.Hash
}

// release deletes a content, and waits until nobody uses it.
func (c collection) release(who context.Context, ref cas.Ref) {
	c.t.Helper()
	if _, err := c.Release(who, ref.String()); err != nil {
		c.t.Fatal(err)
	}
	c.clock.Advance(inUse + time.Minute)
}

// collect collects, and checks which of the texts are still stored.
func (c collection) collect(removed int, there ...string) {
	c.t.Helper()
	if n, err := c.Collect(c.t.Context()); err != nil || n != removed {
		c.t.Errorf("%d contents are removed, %v, want %d", n, err, removed)
	}
	for _, text := range there {
		if got, err := c.Read(c.t.Context(), cas.Sum([]byte(text)), 1<<20); err != nil || string(got) != text {
			c.t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

// gone checks that a text is stored nowhere.
func (c collection) gone(text string) {
	c.t.Helper()
	ref := cas.Sum([]byte(text))
	if _, err := c.Open(c.t.Context(), ref); fault.CodeOf(err) != fault.NotFound {
		c.t.Errorf("%q: %v", text, err)
	}
	if _, err := c.folder.Stat(c.t.Context(), ref); fault.CodeOf(err) != fault.NotFound {
		c.t.Errorf("the file of %q: %v", text, err)
	}
	var rows int
	err := c.db.QueryRow(c.t.Context(), "SELECT COUNT(*) FROM contents WHERE hash = $1", ref.String()).Scan(&rows)
	if err != nil || rows != 0 {
		c.t.Errorf("%d rows of %q, %v", rows, text, err)
	}
}

func TestCollectRemovesWhatNobodyHas(t *testing.T) {
	t.Parallel()
	eachCollection(t, func(t *testing.T, c collection) {
		alone, both := c.store(c.ada, "alone"), c.store(c.ada, "both")
		c.store(c.bob, "both")
		everybody := c.store(t.Context(), "everybody's")
		if c.store(c.ada, "everybody's") != everybody {
			t.Fatal("another hash")
		}
		c.collect(0, "alone", "both", "everybody's")
		if _, err := c.Release(c.ada, alone.String()); err != nil {
			t.Fatal(err)
		}
		c.collect(0, "alone") // a run may use its file
		c.clock.Advance(inUse + time.Minute)
		c.collect(1, "both", "everybody's")
		c.gone("alone")
		c.release(c.ada, both)
		c.release(c.ada, everybody)
		c.collect(0, "both", "everybody's")
		c.release(c.bob, both)
		c.collect(1, "everybody's")
		c.gone("both")
		if _, err := c.Find(c.bob, both.String()); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("what was removed: %v", err)
		}
		c.store(c.bob, "both")
		c.collect(0, "both")
	})
}

// TestCollectKeepsWhatCanBeRestored checks that a deleted artifact has its content for 30
// days, and that its words are not in the index.
func TestCollectKeepsWhatCanBeRestored(t *testing.T) {
	t.Parallel()
	eachCollection(t, func(t *testing.T, c collection) {
		a, _, err := c.Put(c.ada, strings.NewReader("song"), Details{Name: "lullaby"})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := c.Delete(c.ada, a.Hash); err != nil {
				t.Fatal(err)
			}
			c.clock.Advance(restorable - time.Hour)
			c.collect(0, "song")
			if _, err := c.Restore(c.ada, a.Hash); err != nil {
				t.Fatal(err)
			}
			c.collect(0, "song")
		}
		if _, err := c.Delete(c.ada, a.Hash); err != nil {
			t.Fatal(err)
		}
		err = c.db.Read(t.Context(), func(tx *db.Tx) error {
			found, err := c.words.find(t.Context(), tx, Query{audience: everything}, []string{"lullaby"}, 10)
			if len(found) > 0 {
				t.Errorf("the words of deleted artifacts are found: %v", found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		c.clock.Advance(restorable + time.Hour)
		c.collect(1)
		c.gone("song")
		if _, err := c.Restore(c.ada, a.Hash); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("restored after 30 days: %v", err)
		}
	})
}

// TestCollectKeepsWhatRowsNeed checks the columns of other packages.
func TestCollectKeepsWhatRowsNeed(t *testing.T) {
	t.Parallel()
	eachCollection(t, func(t *testing.T, c collection) {
		needed, over, named := c.store(c.ada, "needed"), c.store(c.ada, "over"), c.store(c.ada, "named")
		write := func(text string, args ...any) {
			t.Helper()
			err := c.db.Exec(t.Context(), text, args...)
			if err != nil {
				t.Fatal(err)
			}
		}
		write("CREATE TABLE wanted (hash TEXT NOT NULL, named TEXT NOT NULL, wanted BOOLEAN NOT NULL)")
		write("INSERT INTO wanted (hash, named, wanted) VALUES ($1, $2, TRUE), ($3, $2, FALSE)", needed.String(), named.String(), over.String())
		for _, ref := range []cas.Ref{needed, over, named} {
			c.release(c.ada, ref)
		}
		c.collect(2, "needed")
		c.gone("over")
		c.gone("named")
		write("UPDATE wanted SET wanted = FALSE")
		c.collect(1)
		c.gone("needed")
		err := c.db.Write(t.Context(), func(tx *db.Tx) error { return c.Use(t.Context(), tx, needed) })
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("use of what was removed: %v", err)
		}
	})
}

// TestKeepIsForRows checks that what was kept stays as long as its row, that nobody reads it, and
// that it is nobody's artifact.
func TestKeepIsForRows(t *testing.T) {
	t.Parallel()
	eachCollection(t, func(t *testing.T, c collection) {
		if err := c.db.Exec(t.Context(), "CREATE TABLE wanted (hash TEXT NOT NULL, named TEXT NOT NULL, wanted BOOLEAN NOT NULL)"); err != nil {
			t.Fatal(err)
		}
		keep := func(who context.Context, text string) {
			t.Helper()
			err := c.Keep(who, strings.NewReader(text), func(tx *db.Tx, ref cas.Ref) error {
				_, err := tx.Exec(t.Context(), "INSERT INTO wanted (hash, named, wanted) VALUES ($1, '', TRUE)", ref.String())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, who := range []context.Context{c.ada, t.Context()} { // also the owner of the machine
			keep(who, "kept")
			c.collect(0, "kept")
			if _, err := c.Find(c.ada, cas.Sum([]byte("kept")).String()); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("what was kept is read: %v", err)
			}
			if err := c.db.Exec(t.Context(), "DELETE FROM wanted"); err != nil {
				t.Fatal(err)
			}
			c.collect(1)
			c.gone("kept")
		}
	})
}

// TestCollectKeepsForeignContents checks that bytes which another program stored in the
// folder stay, also if somebody stored the same.
func TestCollectKeepsForeignContents(t *testing.T) {
	t.Parallel()
	eachCollection(t, func(t *testing.T, c collection) {
		if _, _, err := c.blobs.Put(t.Context(), strings.NewReader("foreign")); err != nil {
			t.Fatal(err)
		}
		c.collect(0, "foreign")
		c.release(c.ada, c.store(c.ada, "foreign"))
		c.collect(0, "foreign")
	})
}

// TestCollectAfterACrash checks what is left wherever a process dies.
func TestCollectAfterACrash(t *testing.T) {
	t.Parallel()
	eachCollection(t, func(t *testing.T, c collection) {
		// Before it is stored who has the content.
		dead := claim{"dead", principal.OwnerOf(c.ada)}
		if _, _, err := c.blobs.Put(c.ada, c.claiming(c.ada, dead, strings.NewReader("half"))); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Find(c.bob, cas.Sum([]byte("half")).String()); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("somebody else reads what nobody has: %v", err)
		}
		c.collect(0, "half")
		c.clock.Advance(storing + time.Minute)
		c.collect(1)
		c.gone("half")
		err := c.db.Write(t.Context(), func(tx *db.Tx) error { return c.settle(t.Context(), tx, dead, cas.Sum([]byte("half"))) })
		if !errors.Is(err, cas.ErrRemoved) {
			t.Errorf("the slow process goes on: %v", err)
		}

		// After the bytes are removed, before that is committed.
		ref := c.store(c.ada, "twice")
		c.release(c.ada, ref)
		stable := c.blobs
		c.blobs = dying{stable}
		if n, err := c.Collect(t.Context()); err == nil || n != 0 {
			t.Fatalf("it did not die: %d, %v", n, err)
		}
		c.blobs = stable
		if _, err := c.Find(c.ada, ref.String()); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("what is being removed: %v", err)
		}
		c.store(c.bob, "twice")
		c.collect(0, "twice")
		c.release(c.bob, ref)
		c.blobs = dying{stable}
		if _, err := c.Collect(t.Context()); err == nil {
			t.Fatal("it did not die")
		}
		c.blobs = stable
		c.collect(1)
		c.gone("twice")
	})
}

// dying is a store of a process that dies after it removed something.
type dying struct{ cas.Store }

func (d dying) Remove(ctx context.Context, tx *db.Tx, ref cas.Ref) error {
	return errors.Join(d.Store.Remove(ctx, tx, ref), errors.New("killed"))
}

// TestStoringWhileOthersRemove lets two nodes collect without a pause while people store and
// delete the same content. Whoever has stored it can read it until they delete it.
func TestStoringWhileOthersRemove(t *testing.T) {
	t.Parallel()
	eachDatabase(t, storeWhileOthersRemove)
}

func storeWhileOthersRemove(t *testing.T, url string) {
	nodes := twoNodes(t, url)
	ctx, stop := context.WithCancel(t.Context())
	var collecting, storing sync.WaitGroup
	for _, node := range nodes {
		collecting.Go(func() {
			for ctx.Err() == nil {
				if _, err := node.Collect(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	content := bytes.Repeat([]byte("the same "), 1000)
	for i, node := range nodes {
		name := fmt.Sprintf("p%d", i)
		who := principal.With(t.Context(), principal.Principal{ID: "person:" + name, Org: "acme"})
		storing.Go(func() {
			for range 10 {
				var r io.Reader = bytes.NewReader(content)
				if i == 1 {
					r = iotest.DataErrReader(r) // it cannot be read again
				}
				c, err := node.StoreContent(who, r, "")
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := node.Read(who, c.Hash, 1<<20); err != nil || !bytes.Equal(got, content) {
					t.Errorf("stored, and then %d bytes, %v", len(got), err)
				}
				if err := (Erasing{node.Store}).Erase(who, personal.Person{ID: name}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	storing.Wait()
	stop()
	collecting.Wait()
	if used, err := nodes[0].Storage(t.Context(), "acme"); err != nil || used != 0 {
		t.Errorf("%d bytes are counted, %v", used, err)
	}
}

// TestSumsAreExact lets two nodes store, delete, restore and erase at once. The stored sum is
// what the rows say, and one that is wrong is corrected.
func TestSumsAreExact(t *testing.T) {
	t.Parallel()
	eachDatabase(t, sumsAreExact)
}

func sumsAreExact(t *testing.T, url string) {
	nodes := twoNodes(t, url)
	check := func() {
		t.Helper()
		var stored, counted int64
		err := nodes[0].db.Read(t.Context(), func(tx *db.Tx) (err error) {
			if stored, _, err = storageOf(t.Context(), tx, "acme"); err == nil {
				counted, err = countStorage(t.Context(), tx, "acme")
			}
			return err
		})
		if err != nil || stored != counted || stored == 0 {
			t.Errorf("%d bytes are stored as the sum of %d, %v", stored, counted, err)
		}
	}
	var working sync.WaitGroup
	for i, node := range nodes {
		for _, name := range []string{"ada", "bob"} {
			who := principal.With(t.Context(), principal.Principal{ID: "person:" + name, Org: "acme"})
			working.Go(func() {
				for n := range 8 {
					a, _, err := node.Put(who, strings.NewReader(strings.Repeat("x", 10+n+i)), Details{})
					if err == nil && n%2 == 0 {
						_, err = node.Delete(who, a.Hash)
					}
					if err == nil && n%4 == 0 {
						_, err = node.Restore(who, a.Hash)
					}
					if err != nil && fault.CodeOf(err) != fault.NotFound && fault.CodeOf(err) != fault.Conflict { // the other node did it
						t.Error(err)
					}
				}
			})
		}
	}
	working.Wait()
	check()
	if err := (Erasing{nodes[0].Store}).Erase(t.Context(), personal.Person{ID: "ada"}); err != nil {
		t.Fatal(err)
	}
	check()
	err := nodes[0].db.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE org_storage SET bytes = 7")
		if err == nil {
			_, err = tx.Exec(t.Context(), "INSERT INTO org_storage (org, bytes) SELECT 'acme', 7 WHERE NOT EXISTS (SELECT 1 FROM org_storage)")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nodes[0].recount(t.Context()); err != nil {
		t.Fatal(err)
	}
	check()
}
