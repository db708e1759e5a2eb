// Package fio knows how fio is asked to read and write blocks, and reads what it reports.
package fio
