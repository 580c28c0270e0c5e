package egress

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
)

// minMasked is the length from which on a value is looked for in responses: shorter ones
// are parts of ordinary text.
const minMasked = 8

// maskResponse replaces secrets in a response by their placeholders. What a destination
// compresses without being asked, encodes, or sends after a change of the protocol is
// not found.
func maskResponse(response *http.Response) error {
	x := exchangeOf(response.Request.Context())
	if x.counts {
		response.Body = countedBody{response.Body, &x.track.received}
	}
	var masked swaps
	sameSize := true
	for _, s := range x.swaps {
		if len(s.value) >= minMasked {
			masked, sameSize = append(masked, s), sameSize && len(s.value) == len(s.placeholder)
		}
	}
	if len(masked) == 0 {
		return nil
	}
	masked.header(response.Header)
	if response.StatusCode == http.StatusSwitchingProtocols || response.Body == http.NoBody {
		return nil
	}
	if !sameSize {
		response.Header.Del("Content-Length")
		response.ContentLength = -1
	}
	response.Body = &maskedBody{ReadCloser: response.Body, swaps: masked, ended: func() { masked.header(response.Trailer) }}
	return nil
}

func (s swaps) header(header http.Header) {
	for _, values := range header {
		for i := range values {
			for _, one := range s {
				values[i] = string(bytes.ReplaceAll([]byte(values[i]), []byte(one.value), []byte(one.placeholder)))
			}
		}
	}
}

// maskedBody replaces values in a stream. It holds back only what may be the beginning of
// a value, so that events pass at once.
type maskedBody struct {
	io.ReadCloser
	swaps swaps
	ended func() // at the end of the body

	ready  []byte // masked
	held   []byte // may be the beginning of a value
	buffer [8 << 10]byte
	err    error
}

func (b *maskedBody) Read(into []byte) (int, error) {
	for len(b.ready) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		n, err := b.ReadCloser.Read(b.buffer[:])
		b.err = err
		b.ready, b.held = b.swaps.mask(append(b.held, b.buffer[:n]...), err != nil)
		if err != nil {
			b.ended()
		}
	}
	n := copy(into, b.ready)
	b.ready = b.ready[n:]
	return n, nil
}

// mask replaces the values in data. Unless it is the last, the end of it that may be the
// beginning of a value is held back.
func (s swaps) mask(data []byte, last bool) (masked, held []byte) {
	for len(data) > 0 {
		at, one := s.first(data)
		if at < 0 {
			break
		}
		masked = append(append(masked, data[:at]...), one.placeholder...)
		data = data[at+len(one.value):]
	}
	keep := 0
	if !last {
		for _, one := range s {
			keep = max(keep, overlap(data, one.value))
		}
	}
	return append(masked, data[:len(data)-keep]...), append([]byte(nil), data[len(data)-keep:]...)
}

// first finds the first value in data, of several at one place the longest.
func (s swaps) first(data []byte) (at int, found swap) {
	at = -1
	for _, one := range s {
		i := bytes.Index(data, []byte(one.value))
		if i >= 0 && (at < 0 || i < at || i == at && len(one.value) > len(found.value)) {
			at, found = i, one
		}
	}
	return at, found
}

// overlap is how many bytes at the end of data are the beginning of value.
func overlap(data []byte, value string) int {
	for n := min(len(data), len(value)-1); n > 0; n-- {
		if string(data[len(data)-n:]) == value[:n] {
			return n
		}
	}
	return 0
}

// countedBody counts what is read.
type countedBody struct {
	io.ReadCloser
	count *atomic.Int64
}

func (b countedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.count.Add(int64(n))
	return n, err
}
