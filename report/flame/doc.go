// Package flame draws where the processors' time went: a flame graph of one network, or of two with their difference, as one
// page that opens without network and is searched and zoomed into.
package flame
