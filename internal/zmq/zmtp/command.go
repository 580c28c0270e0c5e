package zmtp

import (
	"encoding/binary"
	"strings"
	"time"
)

// The commands we know. Others are ignored.
const (
	cmdReady     = "READY"
	cmdError     = "ERROR"
	cmdPing      = "PING"
	cmdPong      = "PONG"
	cmdSubscribe = "SUBSCRIBE"
	cmdCancel    = "CANCEL"
)

// command is the body of a command frame: length of the name, name, data.
func command(name string, data ...byte) []byte {
	body := make([]byte, 0, 1+len(name)+len(data))
	body = append(body, byte(len(name)))
	body = append(body, name...)
	return append(body, data...)
}

// splitCommand splits a command's body into name and data. Data shares its memory.
func splitCommand(body []byte) (name string, data []byte, err error) {
	if len(body) == 0 || body[0] == 0 || len(body) < 1+int(body[0]) {
		return "", nil, violation("read command: the name is incomplete")
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], nil
}

// metadata is the properties of a socket, the content of its READY.
func metadata(kind Kind, identity string) []byte {
	var data []byte
	data = appendProperty(data, "Socket-Type", kind.String())
	if kind == Dealer || kind == Router {
		data = appendProperty(data, "Identity", identity)
	}
	return data
}

func appendProperty(data []byte, name, value string) []byte {
	data = append(data, byte(len(name)))
	data = append(data, name...)
	data = binary.BigEndian.AppendUint32(data, uint32(len(value)))
	return append(data, value...)
}

// properties reads the metadata of a READY. Names are case-insensitive and
// returned in lower case; of duplicates the first counts.
func properties(data []byte) (map[string]string, error) {
	found := make(map[string]string)
	for len(data) > 0 {
		n := 1 + int(data[0])
		if n == 1 || len(data) < n+4 {
			return nil, violation("read READY: a property's name is incomplete")
		}
		name := strings.ToLower(string(data[1:n]))
		size := binary.BigEndian.Uint32(data[n:])
		data = data[n+4:]
		if uint64(size) > uint64(len(data)) {
			return nil, violation("read READY: the property %q is incomplete", name)
		}
		if _, twice := found[name]; !twice {
			found[name] = string(data[:size])
		}
		data = data[size:]
	}
	return found, nil
}

// reason is the text of an ERROR command.
func reason(data []byte) string {
	if len(data) == 0 || len(data) < 1+int(data[0]) {
		return "no reason given"
	}
	return string(data[1 : 1+int(data[0])])
}

// refusal is the ERROR command with a reason, truncated to 255 bytes.
func refusal(why string) []byte { return command(cmdError, refusalText(why)...) }

// refusalText is the content of an ERROR.
func refusalText(why string) []byte {
	why = why[:min(len(why), 255)]
	return append([]byte{byte(len(why))}, why...)
}

// tick is the unit of the time to live in a PING.
const tick = 100 * time.Millisecond

// ping is a PING. After ttl without a message from us the peer may disconnect.
func ping(ttl time.Duration) []byte {
	ticks := min((ttl+tick-1)/tick, 1<<16-1)
	return command(cmdPing, byte(ticks>>8), byte(ticks))
}

// splitPing reads a PING: how long the sender may be silent afterwards, and the
// context to return in the PONG.
func splitPing(data []byte) (ttl time.Duration, context []byte, err error) {
	if len(data) < 2 || len(data) > 2+16 {
		return 0, nil, violation("read PING: %d bytes", len(data))
	}
	return time.Duration(binary.BigEndian.Uint16(data)) * tick, data[2:], nil
}
