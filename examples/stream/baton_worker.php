<?php
// A persistent worker of `baton work --stream`, in one file without dependencies.
//
//     require 'baton_worker.php';
//
//     baton_serve(function (BatonClaim $claim) {
//         foreach ($claim->payloads() as $payload) { ... }
//         return 'done';
//     });
//
// What the function returns is the result: text, or anything that JSON can hold. An exception fails
// the claim, which is tried again later; BatonReject says that it can never succeed, and BatonRetry
// when to try again. $claim->more() takes what has come to its lane meanwhile.
//
// With `baton work --conn` connections for lanes come too, to who says what to do with what one
// says (this needs the extension `sockets`):
//
//     baton_serve($handle, function (BatonVisit $visit, string $bytes): bool {
//         $visit->write("you said: $bytes");
//         return true;
//     });
//
// It is called when a connection has come, with no bytes, and then with whatever it says. False
// ends it. One thing is done at a time: while a claim is handled, connections wait.
declare(strict_types=1);

// It can never succeed: dead at once.
class BatonReject extends Exception {}

// It failed, and is tried again after $delayMs; 0: as the policy of its queue says.
class BatonRetry extends Exception
{
    public function __construct(string $error, public readonly int $delayMs = 0)
    {
        parent::__construct($error);
    }
}

// The descriptor 3, over which the runner speaks.
class BatonChannel
{
    private $stream;
    private array $lines = [];
    private string $rest = '';
    private array $cancelled = [];
    private array $answers = [];
    private ?Socket $socket = null;     // if connections come
    private array $connections = [];    // that came, and whose lines did not yet
    public array $visits = [];
    private array $leaving = [];

    public function __construct()
    {
        $this->stream = fopen('php://fd/3', 'r+');
        if ($this->stream === false) {
            fwrite(STDERR, "this is run by: baton work QUEUE --stream -- php FILE\n");
            exit(64);
        }
        stream_set_blocking($this->stream, true);
    }

    public function say(array $fields): void
    {
        $flags = JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES;
        $line = json_encode($fields, $flags) . "\n";
        while ($line !== '') {
            $sent = fwrite($this->stream, $line);
            if ($sent === false || $sent === 0) {
                fwrite(STDERR, "the runner has gone\n");
                exit(1);
            }
            $line = substr($line, $sent);
        }
    }

    // Takes in what is there, or waits for something. False: there will be nothing more.
    private function read(): bool
    {
        $bytes = $this->socket ? $this->receive() : fread($this->stream, 65536);
        if ($bytes === false || $bytes === '') {
            return false;
        }
        $lines = explode("\n", $this->rest . $bytes);
        $this->rest = array_pop($lines);
        foreach ($lines as $line) {
            $fields = json_decode($line, true, 512, JSON_THROW_ON_ERROR);
            if (isset($fields['cancel'])) {
                $this->cancelled[$fields['cancel']] = true;
            } elseif (isset($fields['more'])) {
                $this->answers[] = $fields;
            } elseif (isset($fields['leave'])) {
                $this->leaving[] = $fields['leave'];
            } elseif (isset($fields['visit'])) {
                $this->meet($fields);
            } else {
                $this->lines[] = $fields;
            }
        }
        return true;
    }

    // From now on connections may come, so many at once.
    public function welcome(int $visits): void
    {
        if ($visits > 0 && function_exists('socket_recvmsg')) {
            $this->socket = socket_import_stream($this->stream);
        }
        $this->say(['visits' => $this->socket ? $visits : 0]);
    }

    // A line with a connection begins a message of its own, so that the n-th of these lines has the
    // n-th connection; one that could not be received, for want of descriptors, leaves its place
    // empty.
    private function receive(): string|false
    {
        $message = ['buffer_size' => 65536,
            'controllen' => socket_cmsg_space(SOL_SOCKET, SCM_RIGHTS, 1)];
        if (socket_recvmsg($this->socket, $message, MSG_CMSG_CLOEXEC) === false) {
            return false;
        }
        foreach ($message['control'] as $beside) {
            array_push($this->connections, ...$beside['data']);
        }
        if ($message['flags'] & MSG_CTRUNC) {
            $this->connections[] = null;
        }
        return $message['iov'][0] ?? '';
    }

    private function meet(array $fields): void
    {
        $connection = array_shift($this->connections);
        if ($connection === null) {
            $this->say(['visit' => $fields['visit'], 'done' => true]);
        } else {
            $this->visits[$fields['visit']] = new BatonVisit($fields, $connection);
        }
    }

    private function part(BatonVisit $visit): void
    {
        unset($this->visits[$visit->id]);
        fclose($visit->stream);
        $this->say(['visit' => $visit->id, 'done' => true]);
    }

    private function listen(BatonVisit $visit, callable $talk): void
    {
        try {
            $bytes = $visit->greeted ? fread($visit->stream, 65536) : '';
            $gone = $visit->greeted && ($bytes === '' || $bytes === false);
            $visit->greeted = true;
            if ($gone || !$talk($visit, $bytes)) {
                $this->part($visit);
            }
        } catch (Throwable $error) {
            echo "visit {$visit->id}: ", $error::class, ': ', $error->getMessage(), "\n";
            $this->part($visit);
        }
    }

    // Waits until the runner says something, or one who visits does, and listens to those.
    private function serve(?callable $talk): bool
    {
        foreach (array_splice($this->leaving, 0) as $id) {
            if (isset($this->visits[$id])) {
                $this->part($this->visits[$id]);
            }
        }
        $read = [$this->stream];
        foreach ($this->visits as $visit) {
            $read[] = $visit->stream;
            if (!$visit->greeted) {
                $this->listen($visit, $talk);
                return true;
            }
        }
        $none = null;
        if (count($read) > 1 && stream_select($read, $none, $none, null) === false) {
            return true;
        }
        foreach ($this->visits as $visit) {
            if (in_array($visit->stream, $read, true)) {
                $this->listen($visit, $talk);
            }
        }
        return !in_array($this->stream, $read, true) || $this->read();
    }

    // The next claim; null: the runner has hung up.
    public function next(?callable $talk = null): ?array
    {
        while (!$this->lines) {
            if (!$this->serve($talk)) {
                return null;
            }
        }
        return array_shift($this->lines);
    }

    // The answer to a checkpoint.
    public function answer(): array
    {
        while (!$this->answers) {
            if (!$this->read()) {
                throw new RuntimeException('the runner has gone');
            }
        }
        return array_shift($this->answers);
    }

    public function isCancelled(string $claim): bool
    {
        $read = [$this->stream];
        $none = null;
        if (stream_select($read, $none, $none, 0) > 0) {
            $this->read();
        }
        return isset($this->cancelled[$claim]);
    }

    public function forget(string $claim): void
    {
        unset($this->cancelled[$claim]);
    }
}

// A connection of somebody who wants a lane, for as long as the lane is the runner's.
class BatonVisit
{
    public readonly int $id;
    public readonly int $fence;
    public readonly string $queue;
    public readonly string $lane;
    public $stream;
    public bool $greeted = false;
    public mixed $state = null;     // the caller's

    public function __construct(array $fields, Socket $connection)
    {
        $this->id = $fields['visit'];
        $this->fence = $fields['fence'];
        $this->queue = $fields['queue'];
        $this->lane = $fields['lane'];
        $this->stream = socket_export_stream($connection);
        stream_set_blocking($this->stream, true);
    }

    // False: it has gone.
    public function write(string $bytes): bool
    {
        while ($bytes !== '') {
            $sent = @fwrite($this->stream, $bytes);
            if ($sent === false || $sent === 0) {
                return false;
            }
            $bytes = substr($bytes, $sent);
        }
        return true;
    }
}

class BatonClaim
{
    public readonly string $id;
    public int $fence;
    public readonly string $queue;
    public readonly ?string $lane;
    public readonly int $attempt;
    public array $jobs;
    public array $emitted = [];

    public function __construct(array $fields, private BatonChannel $channel)
    {
        $this->id = $fields['claim'];
        $this->fence = $fields['fence'];
        $this->queue = $fields['queue'];
        $this->lane = $fields['lane'];
        $this->attempt = $fields['attempt'];
        $this->jobs = $fields['jobs'];
    }

    // Of all of its jobs, in order: strings of any bytes.
    public function payloads(): iterable
    {
        return $this->payloadsOf($this->jobs);
    }

    // Takes what has come to the lane meanwhile to be joined, at most so many jobs, and returns
    // their payloads, an empty list if there are none. They end with this claim.
    public function more(int $jobs = 100): array
    {
        $this->channel->say(['claim' => $this->id, 'checkpoint' => $jobs]);
        $answer = $this->channel->answer();
        $this->jobs = array_merge($this->jobs, $answer['more']);
        $this->fence = $answer['fence'] ?? $this->fence;
        return iterator_to_array($this->payloadsOf($answer['more']), false);
    }

    private function payloadsOf(array $jobs): iterable
    {
        foreach ($jobs as $job) {
            foreach ($job['payloads'] ?? [$job] as $fields) {
                yield $fields['payload'] ?? base64_decode($fields['payload_base64'], true);
            }
        }
    }

    // Puts follow-up work, in the moment in which this claim is completed.
    public function emit(string $queue, mixed $payload, array $fields = []): void
    {
        $text = !is_string($payload) || preg_match('//u', $payload) === 1;
        $job = $text ? ['payload' => $payload] : ['payload_base64' => base64_encode($payload)];
        $this->emitted[] = ['queue' => $queue] + $job + $fields;
    }

    public function progress(mixed $value): void
    {
        $this->channel->say(['claim' => $this->id, 'progress' => $value]);
    }

    // Whether the runner wants it to stop.
    public function isCancelled(): bool
    {
        return $this->channel->isCancelled($this->id);
    }
}

function baton_answer(BatonClaim $claim, callable $handle): array
{
    $failed = ['claim' => $claim->id, 'ok' => false];
    try {
        $result = $handle($claim);
        $answer = ['claim' => $claim->id, 'ok' => true, 'result' => $result,
            'emit' => $claim->emitted];
        json_encode($answer, JSON_THROW_ON_ERROR);
        return $answer;
    } catch (BatonReject $error) {
        return $failed + ['error' => $error->getMessage(), 'retry' => false];
    } catch (BatonRetry $error) {
        return $failed + ['error' => $error->getMessage(), 'delay_ms' => $error->delayMs];
    } catch (Throwable $error) {
        return $failed + ['error' => $error::class . ': ' . $error->getMessage()];
    }
}

// Until the runner hangs up.
function baton_serve(callable $handle, ?callable $talk = null, int $visits = 100): void
{
    $channel = new BatonChannel();
    if (getenv('BATON_VISITS') !== false) {
        $channel->welcome($talk ? $visits : 0);
    }
    while (($fields = $channel->next($talk)) !== null) {
        $claim = new BatonClaim($fields, $channel);
        $channel->say(baton_answer($claim, $handle));
        $channel->forget($claim->id);
    }
}

if (realpath($_SERVER['SCRIPT_FILENAME'] ?? '') === __FILE__) {
    // Counts the words of each payload, and has the sum kept.
    baton_serve(function (BatonClaim $claim): array {
        $words = 0;
        foreach ($claim->payloads() as $payload) {
            $words += count(preg_split('/\s+/', $payload, -1, PREG_SPLIT_NO_EMPTY));
        }
        echo "$words words in {$claim->queue}\n"; // goes to the runner's log
        if ($claim->queue === 'words') {
            $claim->emit('counts', ['words' => $words], ['lane' => $claim->lane]);
        }
        return ['words' => $words];
    });
}
