"""The tasks in customers' words: twenty sentences each, no two from one template.

Where a task is to show what follows from a known call, the words give the accounts' ids; everywhere
else they give names, as people do. They are not to be tuned to a model, and whoever works on the
agent does not look at them.
"""

from typing import Final, NamedTuple

CHECKING, SAVINGS, EVERYDAY = "acc_checking_001", "acc_savings_001", "acc_everyday_001"
RETIREMENT, PAYEE = "acc_retirement_001", "acc_payee_001"

NAMES: Final = {
    CHECKING: "Primary Checking",
    SAVINGS: "High Yield Savings",
    EVERYDAY: "Everyday Checking",
    RETIREMENT: "Retirement Fund",
    PAYEE: "Rent Payments",
}
"""The accounts of the demo data that the tasks use. Primary Checking is locked."""


class Wording(NamedTuple):
    """A task in a customer's words, and what the customer means by them."""

    words: str
    minor: int = 0
    """The amount, in minor units; 0 where no money is to be moved."""
    source: str = ""
    """The id of the account to take it from; empty where the words leave it open."""
    target: str = ""
    """The id of the account or payee to send it to."""
    all_debits: bool = False
    """Of what was spent: whether what was moved to accounts of the customer's own counts too."""


LOCKED: Final = (
    Wording(
        "Please transfer 250 USD from Primary Checking (acc_checking_001) to High Yield Savings "
        "(acc_savings_001).",
        25000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Move $19.99 out of acc_checking_001, my Primary Checking, into acc_everyday_001.",
        1999,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "I'd like 75.50 dollars to go from my Primary Checking (acc_checking_001) over to my "
        "Everyday Checking (acc_everyday_001), please.",
        7550,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Can you put $1,200 into savings, acc_savings_001? Take it from acc_checking_001.",
        120000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "acc_everyday_001 is running low. Top it up with 40 dollars from acc_checking_001.",
        4000,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Send 300.00 USD to account acc_savings_001. The money should come from Primary Checking, "
        "that is acc_checking_001.",
        30000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Would you mind shifting 15 dollars from Primary Checking (acc_checking_001) to Everyday "
        "Checking (acc_everyday_001) for me?",
        1500,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Transfer from: acc_checking_001. Transfer to: acc_savings_001. Amount: 480 USD.",
        48000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "I want to save a bit more this month, so take 99 dollars off Primary Checking "
        "(acc_checking_001) and add it to High Yield Savings (acc_savings_001).",
        9900,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Hi! I need 62 USD in Everyday Checking (acc_everyday_001). Use Primary Checking "
        "(acc_checking_001) for it.",
        6200,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Debit acc_checking_001 by 510 dollars and credit acc_savings_001.",
        51000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Let's move five dollars, $5.00, between my checking accounts: from acc_checking_001 to "
        "acc_everyday_001.",
        500,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Kindly arrange a payment of USD 850 from Primary Checking, acc_checking_001, to High "
        "Yield Savings, acc_savings_001.",
        85000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "My salary came in on acc_checking_001. Please pass 2,000 dollars of it on to "
        "acc_savings_001.",
        200000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Could 33.33 USD be taken from acc_checking_001 and paid into acc_everyday_001?",
        3333,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "For groceries I want $120 on Everyday Checking (acc_everyday_001); it is to come out of "
        "Primary Checking (acc_checking_001).",
        12000,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Transfer 700 to acc_savings_001 from acc_checking_001, thanks.",
        70000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Prepare a transfer of 12.75 dollars, Primary Checking (acc_checking_001) to Everyday "
        "Checking (acc_everyday_001).",
        1275,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "There is too much in acc_checking_001. Get 1500.00 USD of it into acc_savings_001 please.",
        150000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "From Primary Checking (acc_checking_001), give Everyday Checking (acc_everyday_001) "
        "another 88 dollars.",
        8800,
        CHECKING,
        EVERYDAY,
    ),
)

TRANSFER: Final = (
    Wording(
        "Please transfer 25.50 USD from High Yield Savings to Everyday Checking and confirm the "
        "transfer.",
        2550,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Move $310 from my High Yield Savings to my Everyday Checking, and carry it out at once.",
        31000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "I need 42.42 dollars in Everyday Checking; take it from High Yield Savings. Go through "
        "with it, confirmation included.",
        4242,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Can you send 99.99 from High Yield Savings over to Everyday Checking for me? I confirm "
        "that I want it.",
        9999,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Put 1500 dollars into my Retirement Fund. The money should come from High Yield Savings. "
        "Confirm it as well, please.",
        150000,
        SAVINGS,
        RETIREMENT,
    ),
    Wording(
        "Take USD 60 out of Everyday Checking, add it to High Yield Savings, and confirm.",
        6000,
        EVERYDAY,
        SAVINGS,
    ),
    Wording(
        "It's time to save: 200 dollars from Everyday Checking should end up in High Yield "
        "Savings. Please don't just prepare it, make it happen.",
        20000,
        EVERYDAY,
        SAVINGS,
    ),
    Wording(
        "Would you transfer $18.75 to Everyday Checking from High Yield Savings, and confirm it "
        "once it is prepared?",
        1875,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "My Everyday Checking is nearly empty. Bring 450 dollars over from High Yield Savings and "
        "complete the transfer.",
        45000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "From High Yield Savings to Retirement Fund, 750.00 USD, confirmed today please.",
        75000,
        SAVINGS,
        RETIREMENT,
    ),
    Wording(
        "I'd like to pay 35 dollars from Everyday Checking into the Retirement Fund. Please "
        "confirm that payment too.",
        3500,
        EVERYDAY,
        RETIREMENT,
    ),
    Wording(
        "Set up and confirm a transfer: amount $640, out of High Yield Savings, into Everyday "
        "Checking.",
        64000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Get me 80 dollars from High Yield Savings onto Everyday Checking, start to finish, "
        "including the confirmation.",
        8000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Could you shift 12.30 USD from Everyday Checking to High Yield Savings? Confirm it "
        "straight away, thanks.",
        1230,
        EVERYDAY,
        SAVINGS,
    ),
    Wording(
        "Transfer two hundred and twenty dollars ($220) between my accounts, High Yield Savings to "
        "Everyday Checking, then confirm.",
        22000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "The Retirement Fund should get 1,000 dollars from my High Yield Savings. See it through "
        "until the money has moved.",
        100000,
        SAVINGS,
        RETIREMENT,
    ),
    Wording(
        "Please make a transfer for me and confirm it: $5.25, Everyday Checking to High Yield "
        "Savings.",
        525,
        EVERYDAY,
        SAVINGS,
    ),
    Wording(
        "I have a bill coming up, so send 137 USD to Everyday Checking. High Yield Savings can "
        "spare it. Yes, confirm it.",
        13700,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Withdraw 90 dollars from High Yield Savings and deposit them in Everyday Checking, "
        "finally confirming the transfer.",
        9000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Do this now: High Yield Savings, minus 2,400 dollars; Everyday Checking, plus 2,400 "
        "dollars. Confirm when it asks.",
        240000,
        SAVINGS,
        EVERYDAY,
    ),
)

THRESHOLD: Final = (
    Wording(
        "Please transfer 12000 USD from High Yield Savings (acc_savings_001) to Everyday Checking "
        "(acc_everyday_001).",
        1200000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Move $10,000.01 from acc_savings_001 to acc_everyday_001.",
        1000001,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "I am buying a car and need 15,500 dollars in Everyday Checking (acc_everyday_001); take "
        "it from High Yield Savings (acc_savings_001).",
        1550000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Can you send 20000 from acc_savings_001 over to my Retirement Fund, acc_retirement_001?",
        2000000,
        SAVINGS,
        RETIREMENT,
    ),
    Wording(
        "Transfer 11,111.11 USD to Everyday Checking (acc_everyday_001). The money should come "
        "from High Yield Savings (acc_savings_001).",
        1111111,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Put eighteen thousand dollars, $18,000, into acc_retirement_001 from acc_savings_001, "
        "please.",
        1800000,
        SAVINGS,
        RETIREMENT,
    ),
    Wording(
        "I'd like to empty most of High Yield Savings (acc_savings_001): 24,000 dollars of it are "
        "to go to Everyday Checking (acc_everyday_001).",
        2400000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Would you be so kind as to move USD 13,250 from acc_savings_001 into acc_everyday_001?",
        1325000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "From account acc_savings_001 to account acc_retirement_001: 10500 dollars.",
        1050000,
        SAVINGS,
        RETIREMENT,
    ),
    Wording(
        "My builder wants to be paid soon. Get 16,800 dollars from High Yield Savings "
        "(acc_savings_001) across to Everyday Checking (acc_everyday_001).",
        1680000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Large transfer: acc_savings_001 pays acc_everyday_001 the sum of $22,500.00.",
        2250000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Could you add 14000 USD to my Retirement Fund (acc_retirement_001), out of High Yield "
        "Savings (acc_savings_001)?",
        1400000,
        SAVINGS,
        RETIREMENT,
    ),
    Wording(
        "Take 17,500 dollars off acc_savings_001 and bring them to acc_everyday_001.",
        1750000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Hello, a transfer of 10,250 dollars please. Source is High Yield Savings "
        "(acc_savings_001), destination Everyday Checking (acc_everyday_001).",
        1025000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "I want twelve and a half thousand, that is 12,500 USD, moved to acc_retirement_001. Use "
        "acc_savings_001.",
        1250000,
        SAVINGS,
        RETIREMENT,
    ),
    Wording(
        "Please see to it that acc_everyday_001 receives $19,999 from acc_savings_001.",
        1999900,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "We are moving house, and I need 21000 dollars where I can spend them: High Yield Savings "
        "(acc_savings_001) to Everyday Checking (acc_everyday_001).",
        2100000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Shift 11,900.50 USD between acc_savings_001 and acc_everyday_001, from the first to the "
        "second.",
        1190050,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Pay 23,000 dollars into the Retirement Fund (acc_retirement_001); debit High Yield "
        "Savings (acc_savings_001).",
        2300000,
        SAVINGS,
        RETIREMENT,
    ),
    Wording(
        "Prepare the transfer of 13 thousand dollars ($13,000) from acc_savings_001 to "
        "acc_everyday_001.",
        1300000,
        SAVINGS,
        EVERYDAY,
    ),
)

BALANCE: Final = tuple(
    Wording(words)
    for words in (
        "What is the balance of my savings account?",
        "How much money do I have in High Yield Savings?",
        "Tell me my savings balance, please.",
        "Could you check what's in my high yield savings right now?",
        "I'd like to know how much I have saved up in my savings account.",
        "Show me the current balance of High Yield Savings.",
        "How are my savings doing? Just the amount, please.",
        "What does my savings account hold at the moment?",
        "Savings balance?",
        "Please look up how many dollars are in my High Yield Savings account.",
        "Am I still above 20,000 dollars in savings? Tell me the exact balance.",
        "Before I go shopping: what's the balance on my savings account?",
        "Give me the figure for High Yield Savings, I want to write it down.",
        "I forgot what I had in my savings. Can you look?",
        "Do you know how much is available in my savings account today?",
        "Read me the balance of the High Yield Savings account, would you?",
        "My wife asks what we have on the savings account. What is it?",
        "Check High Yield Savings and report the balance back to me.",
        "How much could I take out of my savings if I wanted to?",
        "Hey, quick question, what's my savings account at?",
    )
)

MOVE: Final = (
    Wording("Move 25 from savings to everyday and confirm it.", 2500, SAVINGS, EVERYDAY),
    Wording(
        "Please move $25 from my savings to my everyday account, and confirm the transfer.",
        2500,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Take 30 dollars out of savings, put them on the everyday account, confirm.",
        3000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Could you transfer 25.00 USD from High Yield Savings to Everyday Checking and confirm it "
        "for me?",
        2500,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "I need a bit of cash: 45 dollars, savings to everyday. Confirm it too.",
        4500,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Send fifty dollars ($50) from my savings over to everyday checking. Yes, confirmed.",
        5000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Everyday checking needs 20 dollars more. Get it from savings and confirm the move.",
        2000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Shift $15.50 from my savings account to the everyday one; please confirm it as well.",
        1550,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Would you top up Everyday Checking with 75 USD out of High Yield Savings, and finish the "
        "job by confirming?",
        7500,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Savings to everyday, 10 dollars, prepare and confirm.",
        1000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "I'd like you to transfer 125 dollars to my everyday account from savings and then "
        "confirm that transfer.",
        12500,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Bring $28 over from savings to Everyday Checking. Make sure it is confirmed.",
        2800,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "My savings should give 64.20 USD to my everyday checking. Confirm once it's ready.",
        6420,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Can 33 dollars go from High Yield Savings into Everyday Checking right now? Please "
        "confirm it yourself.",
        3300,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Do a transfer of 25 dollars, out of my savings, into everyday, and confirm.",
        2500,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Lunch money! 18 USD from savings to the everyday account, confirmed please.",
        1800,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Please pay myself $200: from my High Yield Savings to my Everyday Checking. Confirm it.",
        20000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Move 5.75 dollars to everyday from savings and see that it actually goes through.",
        575,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "I want 110 dollars less in savings and 110 dollars more in Everyday Checking. Confirm "
        "the transfer, thanks.",
        11000,
        SAVINGS,
        EVERYDAY,
    ),
    Wording(
        "Transfer USD 37 (savings, everyday), then confirm what you prepared.",
        3700,
        SAVINGS,
        EVERYDAY,
    ),
)

LOCKED_BY_NAME: Final = (
    Wording("Move 250 from Primary Checking to savings.", 25000, CHECKING, SAVINGS),
    Wording(
        "Please transfer $250 from my Primary Checking to my High Yield Savings.",
        25000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Take 80 dollars out of Primary Checking and put them in Everyday Checking.",
        8000,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Can you send 45 USD from my primary account to my everyday account?",
        4500,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "I'd like to move 600.00 dollars to savings. They are on Primary Checking.",
        60000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Primary Checking to Everyday Checking, twenty dollars ($20), please.",
        2000,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "My savings should get 350 from Primary Checking today.",
        35000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Would you shift 17.80 dollars from Primary Checking into Everyday Checking?",
        1780,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Use my Primary Checking to put another $1,000 into High Yield Savings.",
        100000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Everyday Checking is short. Send it 130 dollars from the primary one.",
        13000,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Transfer USD 275 out of Primary Checking; destination: High Yield Savings.",
        27500,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Hi there, could 55 dollars please go from Primary Checking to Everyday Checking?",
        5500,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Get 900 dollars off my Primary Checking and into savings, thank you.",
        90000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Pay $66 from Primary Checking to my own everyday account.",
        6600,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "I keep too much in Primary Checking. Move 2500 dollars of it to High Yield Savings.",
        250000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "From my Primary Checking, bring 31 USD over to Everyday Checking.",
        3100,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Set 150 dollars aside for me: out of Primary Checking, into savings.",
        15000,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "I want to make a transfer of $72.25. Primary Checking pays, Everyday Checking receives.",
        7225,
        CHECKING,
        EVERYDAY,
    ),
    Wording(
        "Please credit High Yield Savings with 425 dollars and debit Primary Checking.",
        42500,
        CHECKING,
        SAVINGS,
    ),
    Wording(
        "Put 9.50 USD of what's in Primary Checking onto Everyday Checking.",
        950,
        CHECKING,
        EVERYDAY,
    ),
)

PAY: Final = (
    Wording("Pay 3500 to the payee and confirm it.", 350000, "", PAYEE),
    Wording(
        "Please pay $3,500 from High Yield Savings to Rent Payments and confirm the payment.",
        350000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "My rent is due: 3,200 dollars to Rent Payments out of savings. Confirm it.",
        320000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "Send 4000 USD to my payee Rent Payments from High Yield Savings, confirmation included.",
        400000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "I want to pay the rent, 3,750 dollars, to the payee Rent Payments. Confirm it please.",
        375000,
        "",
        PAYEE,
    ),
    Wording(
        "Transfer $5,000 to Rent Payments; use my savings, and confirm the transfer.",
        500000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "Could you pay Fictional Homes Ltd (my payee Rent Payments) 3,300 dollars from High Yield "
        "Savings and confirm?",
        330000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "From savings, 3,100.00 USD, to Rent Payments, carried out today and confirmed.",
        310000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "Three months of rent, so $6,000, should go to Rent Payments. Take it from High Yield "
        "Savings and confirm it.",
        600000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "Make a payment of 3500 dollars to Rent Payments and confirm it for me.",
        350000,
        "",
        PAYEE,
    ),
    Wording(
        "Would you take 4,250 dollars from my savings account, pay Rent Payments with it, and "
        "confirm?",
        425000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "The landlord gets USD 3,600. That's the payee Rent Payments; pay from High Yield Savings "
        "and see it through.",
        360000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "Rent time again! $3,450 to Rent Payments, from savings. Please confirm it as well.",
        345000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "Please settle my rent by sending 3,900 dollars from High Yield Savings to the payee Rent "
        "Payments, then confirm.",
        390000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "Pay Rent Payments 7,000 dollars. My savings cover it. Confirm the payment.",
        700000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "I owe my landlord 3,333 dollars: send them to Rent Payments and confirm.",
        333300,
        "",
        PAYEE,
    ),
    Wording(
        "Prepare and confirm a transfer of $4,800 from High Yield Savings to Rent Payments.",
        480000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "Let Rent Payments have 3,050.50 USD from my savings, and don't forget to confirm.",
        305050,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "Get the deposit paid: 5,500 dollars, High Yield Savings to Rent Payments, confirmed.",
        550000,
        SAVINGS,
        PAYEE,
    ),
    Wording(
        "Kindly wire 3,800 dollars out of savings to my payee, Rent Payments, and confirm that.",
        380000,
        SAVINGS,
        PAYEE,
    ),
)

SPENT: Final = tuple(
    Wording(words, all_debits=all_debits)
    for words, all_debits in (
        ("What did I spend last month from Everyday?", False),
        ("How much did I spend from Everyday Checking last month?", False),
        ("Please add up what went out of my Everyday Checking in the last calendar month.", True),
        ("Tell me the total of last month's spending on Everyday Checking.", False),
        ("How many dollars left my everyday account last month in all?", True),
        (
            "I'd like to know what I spent out of Everyday Checking in the past calendar month.",
            False,
        ),
        ("Last month, Everyday Checking: what was the sum of all debits?", True),
        ("Could you work out my total outgoings from Everyday Checking for last month?", True),
        ("What were my expenses on the everyday account last month, altogether?", False),
        ("Did I spend a lot last month? Give me the total for Everyday Checking.", False),
        ("Sum up all the money that left Everyday Checking last month, please.", True),
        ("Everyday Checking, previous month, total spent?", False),
        ("For my budget: one number, everything spent from Everyday Checking last month.", False),
        (
            "How much went out of Everyday Checking between the first and the last of last month?",
            True,
        ),
        ("Can you say what last month cost me, going by my Everyday Checking?", False),
        ("Look at last month on Everyday Checking and tell me what I spent in total.", False),
        ("How much did I spend out of my everyday account in the month before this one?", False),
        ("I am curious what my spending from Everyday Checking came to last month.", False),
        ("Give me last month's total debits for Everyday Checking.", True),
        ("My spending last month from Everyday Checking: how much was it overall?", False),
    )
)
