package ssh

import (
	"fmt"

	"netdelta/internal/machine"
	"netdelta/testbed"
	"netdelta/testbed/servers/server"
)

// The lines by which the script on the server and this end agree. What else a login prints comes before them.
const (
	sayReady = "netdelta-ready" // with the machine's architecture, and the server's own address of this connection
	sayHash  = "netdelta-hash"  // with the SHA-256 of what arrived
)

// blockSize is how the program is sent: in whole blocks, since dd then reads no byte of what follows.
const blockSize = 64 << 10

// script takes the program to a folder of its own and runs it. It reads two lines: how many blocks come, and, when this end has
// compared the hash, the order. At the end the folder is removed, unless a card is still to be put back of which it has the note. It asks a POSIX shell and dd, sha256sum, uname for
// what every server has.
func script(folder string, sudo bool) string {
	as := ""
	check := ":"
	if sudo {
		as = "sudo -n "
		check = `sudo -n true || { echo "sudo -n is refused: allow this user to run commands as root without a password, or name a user who is root" >&2; exit 1; }`
	}
	text := fmt.Sprintf(`umask 077
d=%[1]s
%[2]s
mkdir "$d" || exit 1
trap '[ -e "$d/%[9]s" ] || rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM PIPE
set -- $SSH_CONNECTION
echo "%[3]s $(uname -m) ${3:--}"
read -r n || exit 1
said=$(dd of="$d/%[4]s" bs=%[5]d count="$n" iflag=fullblock 2>&1) || { echo "$said" >&2; exit 1; }
echo "%[6]s $(sha256sum <"$d/%[4]s")"
IFS= read -r order || exit 1
chmod 700 "$d/%[4]s"
%[7]s"$d/%[4]s" %[8]s "$order"
`, folder, check, sayReady, machine.AgentName, blockSize, sayHash, as, server.Verb, server.CardFile)
	// Whatever the user's shell is, it hands this to a POSIX shell as one word: there is no quote in it but those replaced here.
	return "exec sh -c " + testbed.Quoted(text)
}
