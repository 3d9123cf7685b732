-- Who buys.
CREATE TABLE customer (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT UNIQUE,
    created TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);

-- What they bought.
CREATE TABLE purchase (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customer (id),
    item TEXT NOT NULL,
    cents INTEGER NOT NULL CHECK (cents > 0)
);

CREATE INDEX purchase_by_customer ON purchase (customer_id);

-- Spending of each customer, those without a purchase included.
CREATE VIEW spending AS
SELECT customer.name, COALESCE(SUM(purchase.cents), 0) AS cents
FROM customer
LEFT JOIN purchase ON purchase.customer_id = customer.id
GROUP BY customer.id;
