package result

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// Each line of a journal ends in a checksum of all that stands before it, as the last field of its object: programs that don't know
// of it read the line as ever.
const (
	sealKey  = `,"crc32c":"`
	sealEnd  = `"}`
	sealSize = len(sealKey) + 8 + len(sealEnd)
)

// errUnsealed says that a line has no checksum.
var errUnsealed = errors.New("it has no checksum")

// seal adds the checksum to a JSON object.
func seal(line []byte) []byte {
	body := bytes.TrimSuffix(line, []byte("}"))
	return fmt.Appendf(body, sealKey+"%08x"+sealEnd, checksum(body))
}

// checksum is CRC-32C, which finds every error of up to 32 bits in a row and, at the length of a line, of up to 3 bits anywhere.
func checksum(body []byte) uint32 { return crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) }

// checkSeal returns an error unless a line is as it was written, and errUnsealed where that can't be told: netdelta has written
// lines without a checksum.
func checkSeal(line []byte) error {
	at := len(line) - sealSize
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(sealKey)) || !bytes.HasSuffix(line, []byte(sealEnd)) {
		return errUnsealed
	}
	body, want := line[:at], line[at+len(sealKey):len(line)-len(sealEnd)]
	if have := fmt.Sprintf("%08x", checksum(body)); have != string(want) {
		return fmt.Errorf("its checksum is %s, and it was written with %s: the line was changed", have, want)
	}
	return nil
}
