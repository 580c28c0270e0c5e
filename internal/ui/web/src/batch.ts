// Collects events into batches: a thousand events a second must not redraw the page a
// thousand times, and a hidden page must not collect them without limit.

export interface Typed {
  type: string
}

/**
 * Collects items until `schedule` calls back, and then delivers them together. Above
 * `limit` the oldest items are dropped, except the last one of each type, so that
 * lists which depend on the type are loaded again.
 */
export class Batcher<T extends Typed> {
  private waiting: T[] = []
  private dropped = new Map<string, T>()
  private scheduled = false

  constructor(private readonly deliver: (batch: T[], dropped: T[]) => void, private readonly schedule: (flush: () => void) => void, private readonly limit: number) {}

  add(item: T): void {
    this.waiting.push(item)
    if (this.waiting.length >= 2 * this.limit) this.drop()
    if (this.scheduled) return
    this.scheduled = true
    this.schedule(() => this.flush())
  }

  private drop(): void {
    const oldest = this.waiting.splice(0, this.waiting.length - this.limit)
    for (const item of oldest) this.dropped.set(item.type, item)
  }

  private flush(): void {
    this.scheduled = false
    const batch = this.waiting, dropped = [...this.dropped.values()]
    this.waiting = []
    this.dropped.clear()
    this.deliver(batch, dropped)
  }
}
