// Package queue holds jobs until somebody has time for them.
package queue

import (
	"errors"
	"sync"
)

// ErrEmpty is returned when there is nothing to do.
var ErrEmpty = errors.New("queue: empty")

// Job is one thing to do.
type Job struct {
	ID   int
	Name string
	Run  func() error
}

// Queue keeps jobs in the order in which they came.
type Queue struct {
	mu   sync.Mutex
	jobs []Job
	next int
}

// Push adds a job and returns its number. Numbers grow and are never used
// twice, not even after the job is done, so that a log can be read later.
func (q *Queue) Push(name string, run func() error) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next++
	q.jobs = append(q.jobs, Job{ID: q.next, Name: name, Run: run})
	return q.next
}

// Pop takes the oldest job out.
func (q *Queue) Pop() (Job, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == 0 {
		return Job{}, ErrEmpty
	}
	job := q.jobs[0]
	q.jobs = q.jobs[1:]
	return job, nil
}

func (q *Queue) Len() int { return len(q.jobs) }

func (q *Queue) Empty() bool { return q.Len() == 0 }
