-- What is counted of a key is counted over all queues of its class: the functions do that.
COMMENT ON TABLE baton.rate IS 'the last starts of keys; of a class, in one of its queues';
