package lua

import (
	"encoding/binary"
	"math"
)

// A snapshot is a magic word, a version, the number of opcodes (code only runs
// on the machine it was made for), a body and a checksum of all that.
//
// The body holds, each list preceded by its length: the names of the opened
// libraries; all strings; the compiled functions, inner ones before those they
// are in; what each function value is; how many variables, tables, userdata
// and coroutines there are; their content; and the state itself. Numbers are
// varints, objects are referred to by their position in their list, and lists
// are in the order in which a walk from the globals meets the objects, so that
// equal states give equal bytes.
//
// The version is raised with every change of the format or of what an
// instruction means.
const (
	snapshotMagic   = "LuaState"
	snapshotVersion = 1
	snapshotHead    = len(snapshotMagic) + 2
	checksumSize    = 4
)

// The tags of values: the low four bits of a varint whose rest is a number or
// a position.
const (
	tagConstant uint64 = iota // one of the constants below
	tagInt                    // zigzag
	tagString
	tagTable
	tagFunction
	tagHost // a library function, by the position of its name
	tagUserdata
	tagThread
	tagUpvalue
	tagBits = 4
)

// The first eight take one byte.
const (
	constNil uint64 = iota
	constFalse
	constTrue
	constFloat         // eight bytes follow
	constDeadKey       // a removed key that no value refers to any more
	constInherited     // what the library has at this key
	constInt           // eight bytes follow
	constNullMetatable // only as a metatable
	constNull
	constMain // the main thread
)

// The flags of tables.
const (
	tableArray    byte = 1 << iota
	tableBorrowed      // shows a library, whose name follows
	tableBased         // a changed library, whose name follows
)

// encoder appends the parts of a snapshot to a buffer.
type encoder struct{ buf []byte }

func (e *encoder) byte(b byte)     { e.buf = append(e.buf, b) }
func (e *encoder) uint(n uint64)   { e.buf = binary.AppendUvarint(e.buf, n) }
func (e *encoder) count(n int)     { e.uint(uint64(n)) }
func (e *encoder) int(n int64)     { e.buf = binary.AppendVarint(e.buf, n) }
func (e *encoder) word(n uint64)   { e.buf = binary.LittleEndian.AppendUint64(e.buf, n) }
func (e *encoder) text(s string)   { e.count(len(s)); e.buf = append(e.buf, s...) }
func (e *encoder) tag(t, n uint64) { e.uint(n<<tagBits | t) }

func (e *encoder) bool(b bool) {
	if b {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

// integer writes small integers as one varint.
func (e *encoder) integer(i int64) {
	zigzag := uint64(i)<<1 ^ uint64(i>>63)
	if zigzag < 1<<(64-tagBits) {
		e.tag(tagInt, zigzag)
		return
	}
	e.tag(tagConstant, constInt)
	e.word(uint64(i))
}

func (e *encoder) float(f float64) {
	e.tag(tagConstant, constFloat)
	e.word(math.Float64bits(f))
}

// decoder reads the parts of a snapshot. The first problem sticks: everything
// read after it is zero.
type decoder struct {
	data    []byte
	failure error
}

func (d *decoder) fail(err error) {
	if d.failure == nil {
		d.failure = err
	}
	d.data = nil
}

func (d *decoder) byte() byte {
	if len(d.data) == 0 {
		d.fail(errTruncated)
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

func (d *decoder) bool() bool { return d.byte() != 0 }

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.data)
	if size <= 0 {
		d.fail(errTruncated)
		return 0
	}
	d.data = d.data[size:]
	return n
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.data)
	if size <= 0 {
		d.fail(errTruncated)
		return 0
	}
	d.data = d.data[size:]
	return n
}

func (d *decoder) word() uint64 {
	if len(d.data) < 8 {
		d.fail(errTruncated)
		return 0
	}
	n := binary.LittleEndian.Uint64(d.data)
	d.data = d.data[8:]
	return n
}

// count reads the length of a list whose elements take at least size bytes,
// so that no length can ask for more memory than the data justifies.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64(len(d.data)/size) {
		d.fail(errTruncated)
		return 0
	}
	return int(n)
}

// below reads a number less than limit.
func (d *decoder) below(limit int) int {
	n := d.uint()
	if n >= uint64(limit) {
		d.fail(errReference)
		return 0
	}
	return int(n)
}

// small reads a number that fits a field of the machine.
func (d *decoder) small() int32 {
	n := d.int()
	if n < math.MinInt32 || n > math.MaxInt32 {
		d.fail(errReference)
		return 0
	}
	return int32(n)
}

func (d *decoder) bytes() []byte {
	n := d.count(1)
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}
