// A persistent worker of `baton work --stream`, in one file without dependencies.
//
//     import { serve } from './baton-worker.mjs';
//
//     serve(async (claim) => {
//       for (const payload of claim.payloads()) { ... }
//       return 'done';
//     });
//
// What the function returns is the result: text, or anything that JSON can hold. An error fails the
// claim, which is tried again later; Reject says that it can never succeed, and Retry when to try
// again. The function is called for as many claims at once as `--in-flight` allows. claim.more()
// takes what has come to its lane meanwhile.
//
// Node cannot receive descriptors without an addon, so connections for lanes (`--conn`) are not for
// it: it says that it takes none. In Python and PHP the helpers beside this one do.
import { Buffer } from 'node:buffer';
import { Socket } from 'node:net';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

const CHANNEL = 3; // the descriptor over which the runner speaks

// It can never succeed: dead at once.
export class Reject extends Error {}

// It failed, and is tried again after `delayMs`; 0: as the policy of its queue says.
export class Retry extends Error {
  constructor(error, delayMs = 0) {
    super(error);
    this.delayMs = delayMs;
  }
}

// Text as a string, other bytes as a Buffer.
const payloadOf = (fields) =>
  'payload_base64' in fields ? Buffer.from(fields.payload_base64, 'base64') : fields.payload;

// Of all of these jobs, in order.
function * payloadsOf(jobs) {
  for (const job of jobs) {
    for (const fields of job.payloads ?? [job]) yield payloadOf(fields);
  }
}

class Claim {
  #say;
  #got;
  #controller = new AbortController();

  constructor(fields, say) {
    this.id = fields.claim;
    this.fence = fields.fence;
    this.queue = fields.queue;
    this.lane = fields.lane;
    this.attempt = fields.attempt;
    this.jobs = fields.jobs;
    this.emitted = [];
    this.signal = this.#controller.signal; // aborted when the runner wants it to stop
    this.#say = say;
  }

  // Of all of its jobs, in order.
  payloads() {
    return payloadsOf(this.jobs);
  }

  // Takes what has come to the lane meanwhile to be joined, at most so many jobs, and gives their
  // payloads, an empty list if there are none. They end with this claim.
  async more(jobs = 100) {
    const answer = await new Promise((resolve) => {
      this.#got = resolve;
      this.#say({ claim: this.id, checkpoint: jobs });
    });
    this.jobs.push(...answer.more);
    this.fence = answer.fence ?? this.fence;
    return [...payloadsOf(answer.more)];
  }

  got(answer) {
    this.#got(answer);
  }

  // Puts follow-up work, in the moment in which this claim is completed.
  emit(queue, payload, fields = {}) {
    const job = payload instanceof Uint8Array
      ? { payload_base64: Buffer.from(payload).toString('base64') }
      : { payload };
    this.emitted.push({ queue, ...job, ...fields });
  }

  progress(value) {
    this.#say({ claim: this.id, progress: value });
  }

  cancel() {
    this.#controller.abort();
  }
}

async function answer(claim, handle) {
  try {
    const result = await handle(claim);
    return JSON.stringify({ claim: claim.id, ok: true, result, emit: claim.emitted });
  } catch (error) {
    const failed = { claim: claim.id, ok: false, error: String(error?.message ?? error) };
    if (error instanceof Reject) failed.retry = false;
    if (error instanceof Retry) failed.delay_ms = error.delayMs;
    return JSON.stringify(failed);
  }
}

// Until the runner hangs up.
export function serve(handle) {
  const channel = new Socket({ fd: CHANNEL, readable: true, writable: true });
  const claims = new Map();
  const say = (fields) => channel.write(`${JSON.stringify(fields)}\n`);
  const take = async (line) => {
    const fields = JSON.parse(line);
    if ('cancel' in fields) {
      claims.get(fields.cancel)?.cancel();
      return;
    }
    if ('more' in fields) {
      claims.get(fields.claim).got(fields);
      return;
    }
    const claim = new Claim(fields, say);
    claims.set(claim.id, claim);
    const text = await answer(claim, handle);
    claims.delete(claim.id);
    channel.write(`${text}\n`);
  };
  if (process.env.BATON_VISITS !== undefined) say({ visits: 0 });
  let parts = [];
  channel.setEncoding('utf8');
  channel.on('data', (text) => {
    const lines = text.split('\n');
    parts.push(lines[0]);
    for (let i = 1; i < lines.length; i++) {
      take(parts.join(''));
      parts = [lines[i]];
    }
  });
  channel.on('end', () => process.exit(0));
  channel.on('error', (error) => {
    console.error(`the runner has gone: ${error.message}`);
    process.exit(1);
  });
}

// Counts the words of each payload, and has the sum kept.
function example(claim) {
  let words = 0;
  for (const payload of claim.payloads()) {
    words += payload.toString().split(/\s+/).filter((word) => word !== '').length;
  }
  console.log(`${words} words in ${claim.queue}`); // goes to the runner's log
  if (claim.queue === 'words') claim.emit('counts', { words }, { lane: claim.lane });
  return { words };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) serve(example);
