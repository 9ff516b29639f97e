// Reads numbers from standard input, a line each, lives so many jobs, and answers with a line.
import { createInterface } from 'node:readline';
import Database from 'better-sqlite3';
import { better, defineQueue } from 'plainjob';

const database = new Database(process.argv[2]);
const queue = defineQueue({ connection: better(database), logger: {
    error() {}, warn() {}, info() {}, debug() {} } });
// It relaxes this by itself; here everybody acknowledges what survives a power failure.
database.pragma('synchronous = 2');
const data = 'x'.repeat(148); // 150 bytes as JSON

for await (const line of createInterface({ input: process.stdin })) {
    for (let i = 0; i < Number(line); i++) {
        queue.add('bench', data);
        const job = queue.getAndMarkJobAsProcessing('bench');
        queue.getJobById(job.id);
        queue.markJobAsDone(job.id);
    }
    process.stdout.write('done\n');
}
process.exit(0); // timers of its queue would keep it alive
